// Attention: queries, keys and values side by side, as one product leaves them.
#include "bench/kernels/job.h"

typedef struct AttendRow {
    const char *name;
    uint32_t    heads, places, size;
} AttendRow;

static const AttendRow attend_rows[] = {
    {"bert 12 heads 128 places", 12, 128, 64},
    {"bert 12 heads 512 places", 12, 512, 64},
    {"vit 3 heads 197 places", 3, 197, 64},
};

static void run_attend(const Bench *b, const Job *j, const Version *v, Part part) {
    FusedAttention a = j->of.attend;
    a.version = *v;
    b->isa->attention(&a, part);
}

static uint32_t tasks_attend(const Bench *b, const Job *j, const Version *v) {
    return fused_attention_tasks(&j->of.attend.shape, b->isa, v);
}

static void make_attend(const Bench *b, const void *of, Job *j) {
    const AttendRow    *r = of;
    size_t              wide = (size_t)r->heads * r->size;
    float              *x = job_numbers(j, 3 * wide * r->places);
    AttentionStrides    side = {0, r->size, 3 * wide};
    FusedAttentionShape s = {.batch = 1, .heads = r->heads, .kv_heads = r->heads, .scale = 0.125F};
    s.queries = s.keys = r->places;
    s.size = s.v_size = r->size;
    s.q = s.k = s.v = side;
    s.y = (AttentionStrides){0, r->size, wide};
    j->flops = 4.0 * r->places * r->places * (double)wide;
    j->run = run_attend;
    j->tasks = tasks_attend;
    j->of.attend = (FusedAttention){.shape = s,
                                    .q = x,
                                    .k = x + wide,
                                    .v = x + 2 * wide,
                                    .y = job_numbers(j, wide * r->places)};
    j->n_versions = fused_attention_versions(&s, b->isa, &b->caches, j->versions, MAX_VERSIONS);
    for (uint32_t i = 0; i < j->n_versions; i++)
        job_need(j, fused_attention_scratch(&s, b->isa, &j->versions[i]));
}

const Family family_attend = {"attend", ROWS(attend_rows), make_attend};
