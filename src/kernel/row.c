#include "kernel/row.h"

#include "base/number.h"

// The types that carry the weight of real networks have loops of their own.
void row_load(const Tensor *t, int64_t at, int64_t step, int64_t n, double *out) {
    switch (t->dtype) {
    case DT_F32: {
        const float *p = (const float *)t->data + at;
        if (step == 1)
            for (int64_t i = 0; i < n; i++) out[i] = (double)p[i];
        else
            for (int64_t i = 0; i < n; i++) out[i] = (double)p[i * step];
        return;
    }
    case DT_F64:
        for (int64_t i = 0; i < n; i++) out[i] = ((const double *)t->data)[at + i * step];
        return;
    case DT_U8:
        for (int64_t i = 0; i < n; i++) out[i] = ((const uint8_t *)t->data)[at + i * step];
        return;
    case DT_I8:
        for (int64_t i = 0; i < n; i++) out[i] = ((const int8_t *)t->data)[at + i * step];
        return;
    default:
        for (int64_t i = 0; i < n; i++) out[i] = number_f64(t, at + i * step);
    }
}

void row_store(Tensor *t, int64_t at, int64_t step, int64_t n, const double *in) {
    switch (t->dtype) {
    case DT_F32:
        for (int64_t i = 0; i < n; i++) ((float *)t->data)[at + i * step] = (float)in[i];
        return;
    case DT_F64:
        for (int64_t i = 0; i < n; i++) ((double *)t->data)[at + i * step] = in[i];
        return;
    default:
        for (int64_t i = 0; i < n; i++) number_set(t, at + i * step, in[i]);
    }
}
