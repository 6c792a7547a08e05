#include "compile/bind/bind.h"

#include <math.h>

#include "kernel/blocking.h"
#include "kernel/conv.h"
#include "kernel/conv_plan.h"
#include "kernel/depthwise.h"
#include "kernel/tile.h"
#include "kernel/winograd.h"

// Model of a core: two FMAs and two loads per cycle, FMA latency of four cycles.
enum { START = 25, LATENCY = 4, COPY_BYTES = 16 };  // cycles per tile; of an FMA; bytes per cycle

// Tasks of the busiest part.
static double busiest_tasks(uint32_t tasks, uint32_t parts) {
    return parts > 1 ? ceil_div(tasks, parts) : tasks;
}

// Cycles of a register tile per element of depth.
static double tile_cycles(uint32_t rows, uint32_t vecs) {
    double products = rows * vecs / 2.0, reads = (rows + vecs) / 2.0;
    return fmax(fmax(products, reads), LATENCY) + (rows * vecs < 12 ? 0.25 : 0);
}

// All tiles of a group of vectors; rows are split near-equally.
static double column_cycles(uint32_t rows, uint32_t most, uint32_t vecs, double depth,
                            uint32_t starts) {
    uint32_t n = ceil_div(rows, most), longer = rows % n, each = rows / n;
    double   one = (n - longer) * tile_cycles(each, vecs);
    if (longer > 0) one += longer * tile_cycles(each + 1, vecs);
    return one * depth + (double)n * START * starts;
}

typedef struct Area {  // rows x vectors of accumulators, in tiles of at most tile_rows x tile_vecs
    uint32_t rows, vecs, tile_rows, tile_vecs;
    uint32_t registers, starts;
    double   depth;
} Area;

static double area_cycles(const Area *a) {
    uint32_t n = ceil_div(a->vecs, a->tile_vecs), longer = a->vecs % n, each = a->vecs / n;
    double   sum = 0;
    for (uint32_t i = 0; i < 2; i++) {
        uint32_t vecs = each + i, count = i == 0 ? n - longer : longer;
        if (count == 0 || vecs == 0) continue;
        uint32_t rows = a->tile_rows,
                 most = vecs <= TILE_MAX_VECS ? tile_most_rows(a->registers, vecs) : a->tile_rows;
        if (vecs < a->tile_vecs) rows = rows * a->tile_vecs / vecs;
        sum += count * column_cycles(a->rows, rows < most ? rows : most, vecs, a->depth, a->starts);
    }
    return sum;
}

double cycles_conv(const ConvShape *s, const Isa *isa, const Version *v, uint32_t parts) {
    ConvPlan p = conv_plan(s, v, isa->lanes, isa->registers);
    double   tasks = busiest_tasks(p.tasks, parts);
    size_t   depth = p.panel / isa->lanes;
    Area     one = {.rows = p.block_units * p.unit,
                    .vecs = ceil_div(p.vecs, p.col_groups),
                    .tile_rows = p.tile_rows,
                    .tile_vecs = p.tile_vecs,
                    .registers = isa->registers,
                    .starts = p.n_depths,
                    .depth = (double)depth};
    // Input rows are copied once for all column groups, unless tasks are split by columns.
    double copies = v->split == SPLIT_COLUMNS ? tasks : ceil(tasks / p.col_groups);
    return tasks * area_cycles(&one) + copies * (double)(p.slab_bytes + p.rows_bytes) / COPY_BYTES;
}

// IN, OUT: cycles of the 36-point transforms of a vector; POINT: set-up per point. Fitted.
double cycles_winograd(const ConvShape *s, const Isa *isa, const Version *v, uint32_t parts) {
    enum { IN = 120, OUT = 87, POINT = 40 };
    WinogradPlan p = winograd_plan(s, isa->lanes, v);
    double       tasks = busiest_tasks(winograd_tasks(s, isa, v), parts), cells = tasks, turns;
    Area         one = {.rows = p.most,
                        .vecs = p.widest,
                        .tile_rows = v->tile_rows,
                        .tile_vecs = v->tile_vecs,
                        .registers = isa->registers,
                        .starts = 1,
                        .depth = s->ic};
    if (v->split == SPLIT_ROWS) cells = tasks * p.strips;
    if (v->split == SPLIT_COLUMNS) cells = tasks * p.blocks;
    turns = v->order == ORDER_WEIGHT_STATIONARY ? cells
            : v->split == SPLIT_COLUMNS         ? p.blocks
                                                : ceil(cells / p.strips);
    double each = p.m == 4 ? 1 : 0.4;
    return cells * p.points * (area_cycles(&one) + POINT) +
           turns * p.most * p.channels * each * IN + cells * p.most * p.widest * each * OUT;
}

double cycles_depthwise(const ConvShape *s, const Isa *isa, const Version *v, uint32_t parts) {
    double taps = (double)s->kh * s->kw, vectors = (double)v->rows * s->ow;
    double each = depthwise_method(s) == DEPTHWISE_TAPS ? taps * 0.9 + 1.5 : taps * 1.2 + 2;
    return busiest_tasks(depthwise_tasks(s, isa, v), parts) * vectors * each;
}

double cycles_gemm(const GemmShape *s, const Isa *isa, const Version *v, uint32_t parts) {
    GemmGrid g = gemm_grid(s, v, isa->lanes);
    uint32_t tasks = gemm_tasks(s, isa, v);
    Area     one = {.rows = g.rows < s->m ? g.rows : s->m,
                    .vecs = g.columns,
                    .tile_rows = v->tile_rows,
                    .tile_vecs = v->tile_vecs,
                    .registers = isa->registers,
                    .starts = ceil_div(s->k, v->depth),
                    .depth = s->k};
    if (tasks == 0) return 0;
    double copies = 0, columns = (double)g.columns * isa->lanes;
    if (v->pack == GEMM_COPY) copies += (double)one.rows * s->k * sizeof(float) / g.across;
    if (!s->packed) copies += columns * s->k * sizeof(float) / g.down;
    return busiest_tasks(tasks, parts) * (area_cycles(&one) + copies / COPY_BYTES);
}

double cycles_attention(const FusedAttentionShape *s, const Isa *isa, const Version *v,
                        uint32_t parts) {
    enum { EXP = 14 };  // cycles of exp and the softmax around it, per vector
    FusedAttentionPlan p = fused_attention_plan(s, v, isa->lanes);
    uint32_t           tasks = fused_attention_tasks(s, isa, v);
    double             block = cycles_gemm(&p.to_scores, isa, &p.scores_version, 1) +
                   cycles_gemm(&p.to_values, isa, &p.values_version, 1);
    block += (double)p.to_scores.m * s->keys / isa->lanes * EXP;
    return busiest_tasks(tasks, parts) * block;
}
