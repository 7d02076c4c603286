"""Rows as inputs of the model. Rows with a common prefix are packed into one sequence, with a mask that keeps them apart and
the positions that each would have alone. Log-probabilities are the same, up to rounding."""

import numpy as np
import torch

# Long enough for fast matrix products, short enough that attention to masked tokens costs little.
SHEET_TOKENS = 512
# The mask of a sequence has the square of its length: 64 MB at this length, and four times as much in float32.
PACKED_TOKENS = 8192
# The number of logits of a sheet: 128 MB of float32, and several times as much for their gradient.
SHEET_LOGITS = 1 << 25


class Sheet:
    """An input. For each sample: its number in the batch, the row and position whose logits predict it, and its token."""

    def __init__(self, ids, positions, mask, samples):
        self.ids, self.positions, self.mask = ids, positions, mask
        numbers, self.lines, self.places, self.targets = (
            np.concatenate(column) for column in zip(*samples, strict=True)
        )
        self.samples = numbers


def sheets_of(rows, packed, vocabulary):
    """`packed`: the maximum length of a packed sequence; 0: rows are not packed."""
    most = max(1, SHEET_LOGITS // vocabulary)
    if packed == 0:
        return [padded(rows, part) for part in unpacked_parts(rows, most)]
    return [joined(rows, pieces) for pieces in joined_pieces(rows, pieces_of(rows, packed, most), packed, most)]


# Not packed


def unpacked_parts(rows, most):
    """Groups rows of similar length. They are padded on the right, which a causal model does not see."""
    trained = [row for row, places in enumerate(rows.samples) if len(places) > 0]
    part = []
    for row in sorted(trained, key=lambda row: rows.samples[row][-1]):
        longest = max(int(rows.samples[row][-1]), 1)
        if part and (
            (len(part) + 1) * longest > SHEET_TOKENS or samples_in(rows, part) + len(rows.samples[row]) > most
        ):
            yield part
            part = []
        part.append(row)
    if part:
        yield part


def samples_in(rows, part):
    return sum(len(rows.samples[row]) for row in part)


def padded(rows, part):
    longest = max(int(rows.samples[row][-1]) for row in part)
    ids = np.zeros((len(part), longest), np.int64)
    samples = []
    for line, row in enumerate(part):
        places = rows.samples[row]
        # The last sample is predicted, but predicts nothing.
        ids[line, : places[-1]] = rows.ids[row][: places[-1]]
        samples.append((numbers_of(rows, row), np.full(len(places), line), places - 1, rows.ids[row][places]))
    return Sheet(ids, None, None, samples)


def numbers_of(rows, row):
    return np.arange(rows.begins[row], rows.begins[row + 1])


# Packed


def pieces_of(rows, packed, most):
    """Groups rows with the same tokens before the first sample, as many as fit into one sequence."""
    groups = {}
    for row, places in enumerate(rows.samples):
        if len(places) > 0:
            groups.setdefault(rows.ids[row][: places[0]].tobytes(), []).append(row)
    for group in groups.values():
        piece = []
        for row in group:
            if piece and not fits(rows, [*piece, row], packed, most):
                yield piece
                piece = []
            piece.append(row)
        yield piece


def fits(rows, piece, packed, most):
    """Attention to a masked token costs as much as to any other. So a long sequence must save more of the common tokens than the
    tails pay for each other."""
    length = length_of(rows, piece)
    if length > min(packed, PACKED_TOKENS) or samples_in(rows, piece) > most:
        return False
    return length <= SHEET_TOKENS or length**2 <= sum(length_of(rows, [row]) ** 2 for row in piece)


def length_of(rows, piece):
    """The common tokens once, and the rest of each row, without its last sample."""
    first = int(rows.samples[piece[0]][0])
    return first + sum(int(rows.samples[row][-1]) - first for row in piece)


def joined_pieces(rows, pieces, packed, most):
    """Concatenates short sequences, because one large input is computed faster than several small ones."""
    together, tokens, samples = [], 0, 0
    for piece in pieces:
        length, count = length_of(rows, piece), samples_in(rows, piece)
        if together and (tokens + length > min(packed, SHEET_TOKENS) or samples + count > most):
            yield together
            together, tokens, samples = [], 0, 0
        together.append(piece)
        tokens, samples = tokens + length, samples + count
    if together:
        yield together


def joined(rows, pieces):
    ids, positions, owners, tails, samples = [], [], [], [], []
    at = 0
    for owner, piece in enumerate(pieces):
        first = int(rows.samples[piece[0]][0])
        begin = at
        parts = [(rows.ids[piece[0]][:first], 0, 0)]
        at += first
        for tail, row in enumerate(piece, start=1):
            places = rows.samples[row]
            rest = rows.ids[row][first : places[-1]]
            # The first token of each tail is predicted by the last common token.
            sources = np.where(places == first, begin + first - 1, at + places - first - 1)
            samples.append((numbers_of(rows, row), np.zeros(len(places), np.int64), sources, rows.ids[row][places]))
            parts.append((rest, first, tail))
            at += len(rest)
        for tokens, position, tail in parts:
            ids.append(tokens)
            positions.append(np.arange(position, position + len(tokens)))
            owners.append(np.full(len(tokens), owner))
            tails.append(np.full(len(tokens), tail))
    owners, tails = np.concatenate(owners), np.concatenate(tails)
    alone = len(pieces) == 1 and len(pieces[0]) == 1
    mask = None if alone else allowed(owners, tails)
    return Sheet(np.concatenate(ids)[None], np.concatenate(positions)[None], mask, samples)


def allowed(owners, tails):
    """Whether a token attends to another: an earlier one of its own row."""
    owners, tails = torch.from_numpy(owners), torch.from_numpy(tails)
    same = owners[:, None] == owners[None, :]
    own = (tails[None, :] == 0) | (tails[:, None] == tails[None, :])
    return torch.tril(same & own)
