// Work and overheads of jobs by the rules of Muri's simulator.
#include <string.h>

#include "cluster/sim/cluster_run.h"

enum { SIZES = 6, OVERHEAD_S = 10, GPUS_MAX = 32 };

typedef struct MuriModel {
    const char *name;
    uint8_t     overhead_s[SIZES];  // of 1, 2, 4, 8, 16, 32 GPUs
} MuriModel;

static const MuriModel models[] = {
    {"vgg16", {7, 7, 8, 9, 9, 10}},    {"vgg19", {7, 7, 8, 9, 10, 10}},
    {"resnet18", {4, 5, 5, 7, 7, 7}},  {"shufflenet_v2_x1_0", {4, 4, 5, 5, 7, 8}},
    {"a2c", {38, 39, 39, 46, 46, 46}}, {"dqn", {5, 5, 6, 6, 8, 8}},
};

static TimeNs overhead(const char *model, uint32_t size) {
    for (size_t i = 0; i < sizeof models / sizeof *models; i++)
        if (strcmp(models[i].name, model) == 0) return models[i].overhead_s[size] * CLUSTER_SECOND;
    return OVERHEAD_S * CLUSTER_SECOND;
}

Err muri_rules_apply(JobList *l, Arena *a, const TimeNs **overheads) {
    TimeNs *to = arena_try_new(a, TimeNs, l->n);
    if (to == NULL) return err_set(ERR_LIMIT, "no memory for %u jobs", l->n);
    for (uint32_t i = 0; i < l->n; i++) {
        Job     *j = &l->at[i];
        uint32_t size = 0;
        while (size < SIZES && 1U << size != j->gpus) size++;
        if (size == SIZES || j->gpu_milli != CLUSTER_WHOLE_GPU)
            return err_set(ERR_ARG, "job %s: %u GPUs; Muri's rules know 1, 2, 4, 8, 16 and 32",
                           j->id, j->gpus);
        if (j->iterations < 1 || j->iteration < 1)
            return err_set(ERR_ARG,
                           "job %s: Muri's rules need its iterations and the time of one; a trace "
                           "of its format states them",
                           j->id);
        TimeNs one = j->iteration / 1000 * 1015 + j->iteration % 1000 * 1015 / 1000;
        if (j->iterations > JOB_TIME_MAX / GPUS_MAX / one)
            return err_set(ERR_LIMIT, "job %s: more than four years of work", j->id);
        j->work = j->iterations * one;
        to[i] = overhead(job_model(l, j), size);
    }
    *overheads = to;
    return ERR_OK;
}
