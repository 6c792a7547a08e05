// Attention over interleaved queries, keys and values, as one projection writes them.
#include "bench/kernels/job.h"

typedef struct AttentionRow {
    const char *name;
    uint32_t    heads, positions, size;
} AttentionRow;

static const AttentionRow attention_rows[] = {
    {"bert 12 heads 128 positions", 12, 128, 64},
    {"bert 12 heads 512 positions", 12, 512, 64},
    {"vit 3 heads 197 positions", 3, 197, 64},
};

static void run_attention(const Bench *b, const Job *j, const Version *v, Part part) {
    FusedAttention a = j->of.attention;
    a.version = *v;
    b->isa->attention(&a, part);
}

static uint32_t tasks_attention(const Bench *b, const Job *j, const Version *v) {
    return fused_attention_tasks(&j->of.attention.shape, b->isa, v);
}

static void make_attention(const Bench *b, const void *of, Job *j) {
    const AttentionRow *r = of;
    size_t              width = (size_t)r->heads * r->size;
    float              *x = job_numbers(j, 3 * width * r->positions);
    AttentionStrides    strides = {0, r->size, 3 * width};
    FusedAttentionShape s = {.batch = 1, .heads = r->heads, .kv_heads = r->heads, .scale = 0.125F};
    s.queries = s.keys = r->positions;
    s.size = s.v_size = r->size;
    s.q = s.k = s.v = strides;
    s.y = (AttentionStrides){0, r->size, width};
    j->flops = 4.0 * r->positions * r->positions * (double)width;
    j->run = run_attention;
    j->tasks = tasks_attention;
    j->of.attention = (FusedAttention){.shape = s,
                                       .q = x,
                                       .k = x + width,
                                       .v = x + 2 * width,
                                       .y = job_numbers(j, width * r->positions)};
    j->n_versions = fused_attention_versions(&s, b->isa, &b->caches, j->versions, MAX_VERSIONS);
    for (uint32_t i = 0; i < j->n_versions; i++)
        job_need(j, fused_attention_scratch(&s, b->isa, &j->versions[i]));
}

const Family family_attention = {"attention", ROWS(attention_rows), make_attention};
