#include "learn/ragged.h"

#include <string.h>

static uint32_t longest(const uint32_t *len, uint32_t n) {
    uint32_t most = 0;
    for (uint32_t i = 0; i < n; i++) most = len[i] > most ? len[i] : most;
    return most;
}

// Counting sort: start[l] first counts the sequences of length l, then is their next rank.
static void rank_all(Ragged *r, const uint32_t *len) {
    uint32_t *next = r->start, rank = 0;
    memset(next, 0, ((size_t)r->n_steps + 1) * sizeof *next);
    for (uint32_t i = 0; i < r->n_seqs; i++) next[len[i]]++;
    for (uint32_t l = r->n_steps + 1; l-- > 0;) {
        uint32_t n = next[l];
        next[l] = rank;
        rank += n;
    }
    for (uint32_t i = 0; i < r->n_seqs; i++) {
        r->rank[i] = next[len[i]]++;
        r->len[r->rank[i]] = len[i];
    }
}

void ragged_make(Ragged *r, const uint32_t *len, uint32_t n_seqs) {
    r->n_seqs = n_seqs;
    r->n_steps = longest(len, n_seqs);
    rank_all(r, len);
    uint32_t alive = n_seqs, row = 0;
    for (uint32_t t = 0; t < r->n_steps; t++) {
        while (alive > 0 && r->len[alive - 1] <= t) alive--;
        r->start[t] = row;
        row += alive;
    }
    r->start[r->n_steps] = r->n_rows = row;
}

void ragged_put(const Ragged *r, uint32_t seq, const float *from, size_t cols, float *m,
                size_t ld) {
    uint32_t n = r->len[r->rank[seq]];
    for (uint32_t t = 0; t < n; t++)
        memcpy(m + ragged_row(r, seq, t) * ld, from + t * cols, cols * sizeof *m);
}
