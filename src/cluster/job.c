#include "cluster/job.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/decimal.h"
#include "base/rng.h"

typedef struct Key {
    TimeNs   submit;
    uint32_t row, from;
} Key;

static int by_time(const void *a, const void *b) {
    const Key *x = a, *y = b;
    if (x->submit != y->submit) return x->submit < y->submit ? -1 : 1;
    return x->row < y->row ? -1 : x->row > y->row;
}

static bool in_order(const JobList *l) {
    for (uint32_t i = 1; i < l->n; i++)
        if (by_time(&(Key){l->at[i - 1].submit, l->at[i - 1].row, 0},
                    &(Key){l->at[i].submit, l->at[i].row, 0}) > 0)
            return false;
    return true;
}

Err job_list_sort(JobList *l, Arena *scratch) {
    if (in_order(l)) return ERR_OK;
    size_t mark = scratch->used;
    Key   *keys = arena_try_new(scratch, Key, l->n);
    Job   *copy = arena_try_new(scratch, Job, l->n);
    if (keys == NULL || copy == NULL) return err_set(ERR_LIMIT, "no memory to sort %u jobs", l->n);
    for (uint32_t i = 0; i < l->n; i++) {
        keys[i] = (Key){l->at[i].submit, l->at[i].row, i};
        copy[i] = l->at[i];
    }
    qsort(keys, l->n, sizeof *keys, by_time);
    for (uint32_t i = 0; i < l->n; i++) l->at[i] = copy[keys[i].from];
    arena_rewind(scratch, mark);
    return ERR_OK;
}

static const char elastic_help[] = "write 1..8, or 1..8,0.5 for a share of the jobs";

Err elastic_range_read(const char *text, ElasticRange *out) {
    enum { UNIT = 1000000 };
    char    copy[64];
    int64_t min = 0, max = 0, part = UNIT;
    *out = (ElasticRange){0};
    if (text == NULL) return ERR_OK;
    (void)snprintf(copy, sizeof copy, "%s", text);
    char *comma = strchr(copy, ','), *dots = strstr(copy, "..");
    if (comma != NULL) *comma = '\0';
    if (dots != NULL) *dots = '\0';
    const char *low = copy, *high = dots != NULL ? dots + 2 : "",
               *share = comma != NULL ? comma + 1 : "1";
    if (strlen(text) >= sizeof copy || decimal_read(low, 1, JOB_GPUS_MAX, &min) != DECIMAL_OK ||
        decimal_read(high, 1, JOB_GPUS_MAX, &max) != DECIMAL_OK ||
        decimal_read(share, UNIT, UNIT, &part) != DECIMAL_OK || min < 1 || max <= min)
        return err_set(ERR_ARG, "--elastic %.40s: %s", text, elastic_help);
    *out = (ElasticRange){(uint32_t)min, (uint32_t)max, (double)part / UNIT};
    return ERR_OK;
}

void job_list_make_elastic(JobList *l, const ElasticRange *x) {
    const Rng rows = {1};
    for (uint32_t i = 0; i < l->n && x->max > 0; i++) {
        Job *j = &l->at[i];
        Rng  own = rng_fork(rows, j->row);
        bool within = j->gpus >= x->min && j->gpus <= x->max && j->gpu_milli == 1000;
        if (!within || j->gpus_max > 0 || rng_unit64(&own) >= x->share) continue;
        j->gpus_min = x->min;
        j->gpus_max = x->max;
    }
}

const char *job_class_name(JobClass c) {
    static const char *const names[] = {
#define X(id, name, about) name,
#include "cluster/job_class.def"
#undef X
    };
    return names[c];
}

const char *job_model(const JobList *l, const Job *j) {
    return j->model < l->n_models ? l->models[j->model] : "";
}

const char *job_tenant(const JobList *l, const Job *j) {
    return j->tenant < l->n_tenants ? l->tenants[j->tenant] : "";
}

uint32_t job_list_left_out(const JobList *l) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < l->n_left_out; i++) n += l->left_out[i].rows;
    return n;
}

double job_gpu_seconds(const Job *j) {
    if (j->work < 0) return 0;
    return (double)j->work / (double)JOB_SECOND * j->gpus * j->gpu_milli / 1000;
}
