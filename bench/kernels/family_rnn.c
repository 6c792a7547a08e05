// GRU and LSTM layers.
#include <math.h>

#include "bench/kernels/job.h"

typedef struct RnnRow {
    const char  *name;
    GatedRnnKind kind;
    uint32_t     steps, batch, input, hidden;
} RnnRow;

static const RnnRow rnn_rows[] = {
    {"keyword lstm 49 steps 10-118", GATED_RNN_LSTM, 49, 1, 10, 118},
    {"lstm 32 steps 128-128", GATED_RNN_LSTM, 32, 1, 128, 128},
    {"lstm 16 sequences 50 steps 256-256", GATED_RNN_LSTM, 50, 16, 256, 256},
    {"gru 49 steps 40-128", GATED_RNN_GRU, 49, 1, 40, 128},
};

static void run_rnn(const Bench *b, const Job *j, const Version *v, Part part) {
    GatedRnn r = j->of.rnn;
    r.version = *v;
    b->isa->gated_rnn(&r, part);
}

static uint32_t tasks_rnn(const Bench *b, const Job *j, const Version *v) {
    return gated_rnn_tasks(&j->of.rnn.shape, b->isa, v);
}

static void make_rnn(const Bench *b, const void *of, Job *j) {
    const RnnRow *r = of;
    GatedRnnShape s = {.kind = r->kind, .steps = r->steps, .batch = r->batch, .input = r->input};
    size_t        gates = (r->kind == GATED_RNN_LSTM ? 4 : 3) * (size_t)r->hidden;
    s.hidden = r->hidden;
    s.directions = 1;
    s.clip = INFINITY;
    GatedRnnWeights w = {.w = job_numbers(j, gates * r->input),
                         .r = job_numbers(j, gates * r->hidden),
                         .b = job_numbers(j, 2 * gates)};
    float          *packed = job_numbers(j, gated_rnn_pack_bytes(&s, b->isa) / sizeof(float));
    gated_rnn_pack(&s, &w, b->isa, packed);
    j->flops = 2.0 * r->steps * r->batch * (double)gates * (r->input + r->hidden);
    j->run = run_rnn;
    j->tasks = tasks_rnn;
    j->of.rnn = (GatedRnn){.shape = s,
                           .packed = packed,
                           .x = job_numbers(j, (size_t)r->steps * r->batch * r->input),
                           .y = job_numbers(j, (size_t)r->steps * r->batch * r->hidden)};
    j->n_versions = gated_rnn_versions(&s, b->isa, &b->caches, j->versions, MAX_VERSIONS);
    for (uint32_t i = 0; i < j->n_versions; i++)
        job_need(j, gated_rnn_scratch(&s, b->isa, &j->versions[i]));
}

const Family family_rnn = {"rnn", ROWS(rnn_rows), make_rnn};
