#include "eval/what_if.h"

#include <string.h>

static Err more_servers(const TraceRun *p, uint32_t more, Arena *a, ServerList *out) {
    *out = p->servers;
    out->n += more;
    out->gpus += (uint64_t)more * p->servers.at[0].gpus;
    out->at = arena_try_new(a, ServerSpec, out->n);
    if (out->at == NULL) return err_set(ERR_LIMIT, "no memory for %u servers", out->n);
    memcpy(out->at, p->servers.at, p->servers.n * sizeof *out->at);
    for (uint32_t i = p->servers.n; i < out->n; i++) {
        out->at[i] = p->servers.at[0];
        out->at[i].name = arena_printf(a, "more%u", i - p->servers.n);
    }
    return ERR_OK;
}

// Cores or memory of a job: as the trace says, or else in proportion to its GPUs.
static uint32_t share(const TraceRun *p, const Job *j, bool memory) {
    const ServerSpec *s = &p->servers.at[0];
    uint64_t all = memory ? s->memory_mib : s->cores_milli, gpus = s->gpus > 0 ? s->gpus : 1;
    uint32_t said = memory ? j->memory_mib : j->cores_milli;
    return said > 0 ? said : (uint32_t)(all * j->gpus * j->gpu_milli / (gpus * CLUSTER_WHOLE_GPU));
}

static const char *change_job(const TraceRun *p, const WhatIf *w, Arena *a, Job *j) {
    uint32_t was = j->gpus;
    switch (w->kind) {
    case WHAT_GANG:
        j->gpus = (was + 1) / 2;
        j->work = j->work * was / j->gpus;
        j->iteration = j->iteration * was / j->gpus;
        j->cores_milli = (uint32_t)((uint64_t)j->cores_milli * j->gpus / was);
        j->memory_mib = (uint32_t)((uint64_t)j->memory_mib * j->gpus / was);
        return arena_printf(a, "%u of its %u GPUs, for longer", j->gpus, was);
    case WHAT_CORES:
        j->cores_milli = (share(p, j, false) + 1) / 2;
        return arena_printf(a, "%g cores for it instead of %g", j->cores_milli / 1e3,
                            2 * (j->cores_milli / 1e3));
    case WHAT_MEMORY:
        j->memory_mib = (share(p, j, true) + 1) / 2;
        return arena_printf(a, "%.0f GB of memory for it instead of %.0f", j->memory_mib / 1024.0,
                            j->memory_mib / 512.0);
    case WHAT_TYPE: j->gpu_types = 0; return "any type of GPU for it";
    case WHAT_SERVERS:
        return arena_printf(a, "%u more server%s (%u GPUs)", w->servers, w->servers > 1 ? "s" : "",
                            w->servers * p->servers.at[0].gpus);
    case WHAT_POLICY: return arena_printf(a, "policy %s", w->choice->label);
    }
    return "";
}

Err what_if_run(const TraceRun *p, uint32_t job, TimeNs until, Arena *a, WhatIf *w) {
    ClusterResult r;
    ServerList    servers;
    JobList       jobs = p->jobs;
    ClusterRun    run = p->run;
    while (jobs.n > job + 1 && jobs.at[jobs.n - 1].submit > until) jobs.n--;
    jobs.at = arena_try_new(a, Job, jobs.n);
    if (jobs.at == NULL) return err_set(ERR_LIMIT, "no memory for %u jobs", jobs.n);
    memcpy(jobs.at, p->jobs.at, jobs.n * sizeof *jobs.at);
    w->text = change_job(p, w, a, &jobs.at[job]);
    TRY(more_servers(p, w->kind == WHAT_SERVERS ? w->servers : 0, a, &servers));
    run.jobs = &jobs;
    run.servers = &servers;
    run.after = NULL;
    TRY(trace_run_choose(p, w->choice != NULL ? w->choice : &p->choice, a, &run));
    TRY(cluster_simulate(&run, a, &r));
    w->end = r.ends[job];
    return ERR_OK;
}
