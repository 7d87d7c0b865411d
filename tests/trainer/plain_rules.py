"""The rules of Boolean training written out in +1 and -1, one connective at a time.

Nothing here is shared with the product: no packing, no matrix product, no windows. Every sum is
an explicit broadcast over all its terms, every connective goes through `connect`.
"""

import math

import numpy as np


def connect(logic, a, b):
    """L(a, b) of logic values in {-1, 0, 1} or numbers: magnitude |a||b|, sign by logic."""
    a, b = np.broadcast_arrays(np.asarray(a, float), np.asarray(b, float))
    same = (a > 0) == (b > 0)
    sign = np.where(same, 1.0, -1.0) if logic == "xnor" else np.where(same, -1.0, 1.0)
    return np.where((a == 0) | (b == 0), 0.0, sign * np.abs(a) * np.abs(b))


def linear(logic, x, w, bias=None):
    """s[k, j], x [k, i], w [j, i]."""
    s = connect(logic, x[:, None, :], w[None, :, :]).sum(2)
    return s if bias is None else s + bias[None, :]


def linear_votes(logic, z, x):
    """q[j, i] = sum over k of L(z[k, j], x[k, i])."""
    return connect(logic, z[:, :, None], x[:, None, :]).sum(0)


def linear_sent(logic, z, w):
    """g[k, i] = sum over j of L(z[k, j], w[j, i])."""
    return connect(logic, z[:, :, None], w[None, :, :]).sum(1)


def taps(shape, size, stride, padding):
    """Every (output row, output column, tap row, tap column, input row, input column)."""
    height, width = shape
    for oh in range((height + 2 * padding - size) // stride + 1):
        for ow in range((width + 2 * padding - size) // stride + 1):
            for i in range(size):
                for j in range(size):
                    yield oh, ow, i, j, oh * stride + i - padding, ow * stride + j - padding


def pixel(x, r, c, outside):
    """Channels of all images at a pixel [n, c]; `outside` where there is none."""
    inside = 0 <= r < x.shape[1] and 0 <= c < x.shape[2]
    return x[:, r, c] if inside else np.full((len(x), x.shape[3]), float(outside))


def conv(logic, x, w, stride, padding, outside, bias=None):
    """s[n, h, w, m] of x [n, h, w, c] and w [m, i, j, c]."""
    size = w.shape[1]
    extent = [(n + 2 * padding - size) // stride + 1 for n in x.shape[1:3]]
    s = np.zeros((len(x), *extent, len(w)))
    for oh, ow, i, j, r, c in taps(x.shape[1:3], size, stride, padding):
        s[:, oh, ow] += linear(logic, pixel(x, r, c, outside), w[:, i, j])
    return s if bias is None else s + bias


def conv_backward(logic, z, x, w, stride, padding, outside):
    """Votes [m, i, j, c] and the signal by the input [n, h, w, c]."""
    votes, sent = np.zeros(w.shape), np.zeros(x.shape)
    for oh, ow, i, j, r, c in taps(x.shape[1:3], w.shape[1], stride, padding):
        votes[:, i, j] += linear_votes(logic, z[:, oh, ow], pixel(x, r, c, outside))
        if 0 <= r < x.shape[1] and 0 <= c < x.shape[2]:
            sent[:, r, c] += linear_sent(logic, z[:, oh, ow], w[:, i, j])
    return votes, sent


def reweighted(z, s, tau, m):
    """z tanh'(alpha |s - tau|) with alpha = pi / (2 sqrt(3 m)), tanh' as 1 / cosh squared."""
    alpha = math.pi / (2 * math.sqrt(3 * m))
    return z / np.cosh(np.minimum(alpha * np.abs(s - tau), 300)) ** 2


def optimizer_step(w, memory, beta, q, eta, threshold=1.0, fixed=None, keeps=False):
    """New weights, memory and beta, one weight at a time; of a threshold of 0, m and w agree."""
    w, memory = w.copy(), memory.copy()
    unchanged = 0
    for at in np.ndindex(w.shape):
        m = beta * memory[at] + eta * q[at]
        flips = m * w[at] >= threshold if threshold else (m > 0) == (w[at] > 0) and m != 0
        memory[at] = 0.0 if flips and not keeps else m
        if flips:
            w[at] = -w[at]
        else:
            unchanged += 1
    return w, memory, unchanged / w.size if fixed is None else fixed


def max_pool(s, z):
    """The pooled values, and z sent to the first largest of each 2 x 2."""
    n, h, w, c = s.shape
    out, sent = np.zeros((n, h // 2, w // 2, c)), np.zeros(s.shape)
    for k, i, j, m in np.ndindex(out.shape):
        best = max(
            ((2 * i + a, 2 * j + b) for a in (0, 1) for b in (0, 1)),
            key=lambda p: (s[k, p[0], p[1], m], -p[0], -p[1]),
        )
        out[k, i, j, m] = s[k, best[0], best[1], m]
        sent[k, best[0], best[1], m] = z[k, i, j, m]
    return out, sent
