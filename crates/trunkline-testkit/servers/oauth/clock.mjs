// A clock that differs from that of the machine, for tests of expiry and clock skew.

const MachineDate = Date;
let offset = 0;

class ShiftedDate extends MachineDate {
  constructor(...values) {
    if (values.length > 0) super(...values);
    else super(ShiftedDate.now());
  }

  static now() {
    return MachineDate.now() + offset;
  }
}

globalThis.Date = ShiftedDate;

/** Moves the clock of this process to `seconds` ahead of the machine's. */
export function setClockOffset(seconds) {
  offset = seconds * 1000;
}
