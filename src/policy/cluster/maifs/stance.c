#include "policy/cluster/maifs/stance.h"

#include <string.h>

#include "learn/activation.h"
#include "learn/dense.h"

static const Stance rows[STANCES] = {
#define X(name, ...) {__VA_ARGS__},
#include "policy/cluster/maifs/stance_row.def"
#undef X
};

// Costs differ by about a percent and are learned at a temperature of several: what is applied is
// sharper than what is learned.
static const float SHARPNESS = 8;

static const Dense into = {STANCE_FEATURES, STANCE_HIDDEN}, out = {STANCE_HIDDEN, STANCES};

void stance_init(float *w, Rng *rng) {
    memset(w, 0, STANCE_PARAMS * sizeof *w);
    dense_init(into, w, 1.4f, rng);
}

void stance_logits(const float *w, size_t n, const float *features, float *hidden, float *logits) {
    MatBackend was = mat_set_backend(MAT_REPRODUCIBLE);
    dense_forward(into, w, n, mat(features, STANCE_FEATURES), mat_out(hidden, STANCE_HIDDEN));
    activation_forward(ACTIVATION_RELU, n * STANCE_HIDDEN, hidden, hidden);
    dense_forward(out, w + dense_params(into), n, mat(hidden, STANCE_HIDDEN),
                  mat_out(logits, STANCES));
    mat_set_backend(was);
}

void stance_back(const float *w, float *gw, size_t n, const float *features, float *hidden,
                 const float *d_logits) {
    MatBackend was = mat_set_backend(MAT_REPRODUCIBLE);
    for (size_t i = 0; i < n; i++, d_logits += STANCES) {
        float d[STANCE_HIDDEN], *h = hidden + i * STANCE_HIDDEN;
        dense_backward(out, w + dense_params(into), gw + dense_params(into), 1,
                       mat(h, STANCE_HIDDEN), mat(d_logits, STANCES), mat_out(d, STANCE_HIDDEN));
        for (uint32_t k = 0; k < STANCE_HIDDEN; k++) d[k] = h[k] > 0 ? d[k] : 0;
        dense_backward(into, w, gw, 1, mat(features + i * STANCE_FEATURES, STANCE_FEATURES),
                       mat(d, STANCE_HIDDEN), (MatOut){0});
    }
    mat_set_backend(was);
}

Stance stance_usual(void) { return rows[STANCE_USUAL]; }

Stance stance_row(uint32_t row) { return rows[row]; }

Stance stance_mean(const float *logits) {
    float  p[STANCES], all = 0, most = logits[0];
    double victims = 0, levels = 0, probes = 0, hold = 0;
    for (uint32_t i = 1; i < STANCES; i++) most = logits[i] > most ? logits[i] : most;
    for (uint32_t i = 0; i < STANCES; i++) all += p[i] = repro_exp(SHARPNESS * (logits[i] - most));
    for (uint32_t i = 0; i < STANCES; i++) {
        double part = (double)(p[i] / all);
        victims += part * (double)repro_log(rows[i].victims);
        levels += part * (double)repro_log(rows[i].levels);
        probes += part * (double)repro_log(rows[i].probes);
        hold += (part - 1.0 / STANCES) * (double)rows[i].hold;
    }
    return (Stance){repro_exp((float)victims), repro_exp((float)levels), repro_exp((float)probes),
                    hold > 0 ? (float)hold : 0};
}
