// Storage of the authorization server in memory, which the control API can change.

/** An adapter of oidc-provider for each of its models. */
export class Storage {
  #models = new Map();

  adapter(model) {
    if (!this.#models.has(model)) this.#models.set(model, new Adapter(this));
    return this.#models.get(model);
  }

  /** Forgets everything of these models. */
  clear(...models) {
    for (const model of models) this.adapter(model).entries.clear();
  }

  clearAll() {
    for (const adapter of this.#models.values()) adapter.entries.clear();
  }

  /** Marks all refresh tokens as used, as if another process had refreshed. */
  consumeRefreshTokens() {
    const { entries } = this.adapter("RefreshToken");
    for (const payload of entries.values()) payload.consumed ??= Math.floor(Date.now() / 1000);
  }

  revokeByGrantId(grantId) {
    for (const { entries } of this.#models.values()) {
      for (const [id, payload] of entries) {
        if (payload.grantId === grantId) entries.delete(id);
      }
    }
  }
}

class Adapter {
  entries = new Map();
  #storage;

  constructor(storage) {
    this.#storage = storage;
  }

  async upsert(id, payload) {
    this.entries.set(id, structuredClone(payload));
  }

  async find(id) {
    return structuredClone(this.entries.get(id));
  }

  async findByUid(uid) {
    return structuredClone(this.entries.values().find((payload) => payload.uid === uid));
  }

  async findByUserCode(code) {
    return structuredClone(this.entries.values().find((payload) => payload.userCode === code));
  }

  async consume(id) {
    this.entries.get(id).consumed = Math.floor(Date.now() / 1000);
  }

  async destroy(id) {
    this.entries.delete(id);
  }

  async revokeByGrantId(grantId) {
    this.#storage.revokeByGrantId(grantId);
  }
}
