#include "kernel/conv.h"

#include "kernel/conv_plan.h"

uint32_t conv_tasks(const ConvShape *s, const Isa *isa, const Version *v) {
    return conv_plan(s, v, isa->lanes, isa->registers).tasks;
}

size_t conv_scratch(const ConvShape *s, const Isa *isa, const Version *v) {
    ConvPlan p = conv_plan(s, v, isa->lanes, isa->registers);
    return p.terms_bytes + p.rows_bytes + p.slab_bytes;
}

// Bytes of everything, and of what one task goes through.
typedef struct Sizes {
    size_t weights, input, output;
    size_t task_weights, task_input, task_output;
} Sizes;

static Sizes sizes(const ConvShape *s, const ConvPlan *p) {
    Sizes z = {.weights = p->panel * p->vecs * p->groups * sizeof(float),
               .input = p->image_pitch * s->n * sizeof(float),
               .output = p->out_image * s->n * sizeof(float)};
    z.task_weights = z.weights / p->groups / p->col_groups;
    z.task_output = z.output / p->tasks;
    size_t pixels = (size_t)p->block_units * p->unit;
    z.task_input = p->staged ? p->slab_bytes : pixels * p->ic * sizeof(float);
    return z;
}

// How often the weights leave L3: once for each part that uses them, or for each block of rows when
// they do not stay in L2 from one to the next.
static size_t weight_reads(const ConvPlan *p, const Version *v, const Sizes *z, size_t l2,
                           uint32_t parts) {
    size_t blocks = (size_t)p->images * p->row_blocks;
    bool   by_columns = v->split == SPLIT_COLUMNS;
    size_t kept = by_columns ? z->task_weights : z->weights / p->groups;
    size_t sharing = by_columns ? (parts > p->col_groups ? parts / p->col_groups : 1) : parts;
    if (kept + z->task_input > l2 || blocks < sharing) return blocks;
    return sharing < blocks ? sharing : blocks;
}

// The same for the input: once, or for each group of columns that comes back to it.
static size_t input_reads(const ConvPlan *p, const Version *v, const Sizes *z, size_t l2,
                          uint32_t parts) {
    bool by_columns = v->split == SPLIT_COLUMNS && p->row_blocks * p->images > 1;
    if (by_columns && z->input + z->task_weights > l2) return p->col_groups;
    if (by_columns) return parts < p->col_groups ? parts : p->col_groups;
    if (z->task_input + z->task_weights / 2 > l2) return p->vec_groups;
    size_t sharing = parts > p->row_blocks * p->images ? parts / (p->row_blocks * p->images) : 1;
    return sharing < p->col_groups ? sharing : p->col_groups;
}

Traffic conv_traffic(const ConvShape *s, const Isa *isa, const Version *v, const CacheSizes *caches,
                     uint32_t parts) {
    ConvPlan p = conv_plan(s, v, isa->lanes, isa->registers);
    Sizes    z = sizes(s, &p);
    size_t   weights = weight_reads(&p, v, &z, caches->l2, parts);
    size_t   input = input_reads(&p, v, &z, caches->l2, parts);
    size_t   passes = z.task_output > caches->l2 / 2 ? 2 * p.n_depths - 1 : 1;
    Traffic  t = {0, z.weights * weights + z.input * input + z.output * passes};
    if (weights > 1) t.l3_bytes += z.weights;
    if (input > 1) t.l3_bytes += z.input;
    if (passes > 1) t.l3_bytes += z.output;
    return t;
}
