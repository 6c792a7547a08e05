#include "kernel/resample.h"
#include "kernel/vec/vec.h"

resample_fn VEC(resample);

// An input row resampled horizontally, cached for the following output rows.
typedef struct RowBuffer {
    float  *at;   // [ow][unit]
    int64_t row;  // input row; -1: none
} RowBuffer;

typedef struct Plane {
    const Resample *r;
    const float    *x;  // input plane
    float          *y;
    uint32_t        unit;  // floats per pixel
    RowBuffer       lines[2];
} Plane;

static void copy_columns(const Plane *j, const float *x, float *to) {
    const ResampleTap *t = j->r->columns;
    if (j->unit == 1)
        for (uint32_t i = 0; i < j->r->ow; i++) to[i] = x[t[i].at[0]];
    else
        for (uint32_t i = 0; i < j->r->ow; i++)
            vf_store(to + (size_t)i * VEC_LANES, vf_load(x + (size_t)t[i].at[0] * VEC_LANES));
}

static void blend_columns(const Plane *j, const float *x, float *to) {
    const ResampleTap *t = j->r->columns;
    if (j->unit == 1) {
        for (uint32_t i = 0; i < j->r->ow; i++)
            to[i] = x[t[i].at[0]] * t[i].weight[0] + x[t[i].at[1]] * t[i].weight[1];
        return;
    }
    for (uint32_t i = 0; i < j->r->ow; i++) {
        const Vf a = vf_load(x + (size_t)t[i].at[0] * VEC_LANES);
        const Vf b = vf_load(x + (size_t)t[i].at[1] * VEC_LANES);
        vf_store(to + (size_t)i * VEC_LANES,
                 a * vf_set(t[i].weight[0]) + b * vf_set(t[i].weight[1]));
    }
}

static void blend_rows(const float *a, const float *b, const float *weight, float *to, size_t n) {
    const Vf u = vf_set(weight[0]), v = vf_set(weight[1]);
    size_t   i = 0;
    for (; i + VEC_LANES <= n; i += VEC_LANES)
        vf_store(to + i, vf_load(a + i) * u + vf_load(b + i) * v);
    for (; i < n; i++) to[i] = a[i] * weight[0] + b[i] * weight[1];
}

// The resampled line of an input row; computing it does not evict the line of row `keep`.
static const float *line_of(Plane *j, uint32_t row, uint32_t keep) {
    for (int i = 0; i < 2; i++)
        if (j->lines[i].row == row) return j->lines[i].at;
    RowBuffer *l = &j->lines[j->lines[0].row == keep];
    blend_columns(j, j->x + (size_t)row * j->r->iw * j->unit, l->at);
    l->row = row;
    return l->at;
}

static void linear_rows(Plane *j, uint32_t row, uint32_t end) {
    const size_t n = (size_t)j->r->ow * j->unit;
    j->lines[0].row = j->lines[1].row = -1;
    for (; row < end; row++) {
        const ResampleTap *t = &j->r->rows[row];
        const float       *a = line_of(j, t->at[0], t->at[1]);
        const float       *b = line_of(j, t->at[1], t->at[0]);
        blend_rows(a, b, t->weight, j->y + row * n, n);
    }
}

static void nearest_rows(const Plane *j, uint32_t row, uint32_t end) {
    const size_t n = (size_t)j->r->ow * j->unit;
    int64_t      before = -1;
    for (; row < end; row++) {
        const uint32_t from = j->r->rows[row].at[0];
        float         *to = j->y + row * n;
        if (before == from)
            memcpy(to, to - n, n * sizeof *to);
        else
            copy_columns(j, j->x + (size_t)from * j->r->iw * j->unit, to);
        before = from;
    }
}

void VEC(resample)(const Resample *r, Part part) {
    const uint32_t unit = r->plain ? 1 : VEC_LANES, rows = resample_rows(r, VEC_LANES);
    const uint32_t blocks = (r->oh + rows - 1) / rows;
    Plane          j = {.r = r, .unit = unit};
    uint32_t       task, end;
    if (!r->nearest) {
        j.lines[0].at = part.scratch;
        j.lines[1].at = j.lines[0].at + (size_t)r->ow * unit;
    }
    part_range(part, r->n * ((r->c + unit - 1) / unit) * blocks, &task, &end);
    for (; task < end; task++) {
        const uint32_t row = task % blocks * rows, last = r->oh - row < rows ? r->oh : row + rows;
        j.x = r->x + (size_t)(task / blocks) * r->ih * r->iw * unit;
        j.y = r->y + (size_t)(task / blocks) * r->oh * r->ow * unit;
        if (r->nearest)
            nearest_rows(&j, row, last);
        else
            linear_rows(&j, row, last);
    }
}
