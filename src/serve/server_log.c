#include "serve/server_log.h"

#include <math.h>
#include <unistd.h>

#include "base/clock.h"

double log_seconds(TimeNs ns) { return round((double)ns / 1e6) / 1e3; }

// Which limit sets the number of cores.
static const char *cores_limit(const Config *c, const CpuBudget *b) {
    if (c->serve.cores > 0) return "the setting cores";
    if (b->cores < b->present && b->cores < b->allowed) return "the CPU quota";
    return b->allowed < b->present ? "CPU affinity" : "all of the machine";
}

void server_log_starting(const Log *log, const Config *c, const CpuBudget *b) {
    uint32_t    cores = c->serve.cores > 0 ? (uint32_t)c->serve.cores : b->cores;
    const char *file = c->loaded_from.file;
    log_with(log, LOG_INFO, "starting", log_text("version", COTENANT_VERSION),
             log_int("pid", getpid()), log_int("cores", cores), log_int("of", b->present),
             log_text("cores_by", cores_limit(c, b)), log_text("policy", c->serve.policy),
             log_int("memory_mb", (int64_t)(cpu_mem_budget(&cgroup_roots) >> 20)),
             log_int("models", c->n_models), log_if(file != NULL, log_text("config", file)));
    server_log_warnings(log, c);
}

void server_log_warnings(const Log *log, const Config *c) {
    for (uint32_t i = 0; i < c->n_warnings; i++)
        log_with(log, LOG_WARN, "configuration", log_text("why", c->warnings[i]));
}

static void log_loading(const Log *log, const ModelInfo *m) {
    log_with(log, LOG_INFO, "model loading", log_text("model", m->name),
             log_text("version", m->version), log_int("number", m->load_number),
             log_int("of", m->load_count), log_text("path", m->config->path));
}

// Cores of a run: by `max_cores`, and by what was measured for short models.
static int64_t usual_cores(const ModelInfo *m, uint32_t cores) {
    int64_t most = m->config->set.max_cores > 0 ? m->config->set.max_cores : (int64_t)cores;
    return m->cores > 0 && m->cores < most ? m->cores : most;
}

// A version that stays because a newer file failed, or is in quarantine, is ready too.
static void log_ready(const Log *log, const ModelInfo *m, uint32_t cores) {
    const TenantSettings *set = &m->config->set;
    bool                  held = m->quarantined > clock_monotonic_ns();
    bool                  stays = m->reason != NULL && m->reason[0] != '\0';
    if (held || stays) {
        log_with(log, held ? LOG_WARN : LOG_ERROR,
                 held ? "model in quarantine" : "model not replaced: the loaded version stays",
                 log_text("model", m->name), log_text("version", m->version),
                 log_if(held, log_text("why", "failures in a row (setting quarantine)")),
                 log_if(!held, log_text("why", m->reason)));
        return;
    }
    log_with(
        log, LOG_INFO, "model ready", log_text("model", m->name), log_text("version", m->version),
        log_if(m->load_ns > 0, log_real("seconds", log_seconds(m->load_ns))),
        log_if(m->class != CLASS_BEST_EFFORT, log_real("target_ms", (double)m->target_ns / 1e6)),
        log_int("cores", usual_cores(m, cores)),
        log_if(set->min_cores > 0, log_int("reserved", set->min_cores)),
        log_int("memory_mb", (int64_t)(m->memory_bytes >> 20)));
}

// Versions that stay because a search found none faster are no problem.
void server_log_tuned(const Log *log, const ModelInfo *m, const ModelTuned *t) {
    log_with(log, t->failed ? LOG_WARN : LOG_INFO, t->failed ? "model not tuned" : "model tuned",
             log_text("model", m->name), log_text("version", m->version),
             log_real("before_ms", round(t->before_ms * 1e3) / 1e3),
             log_if(!t->failed, log_real("after_ms", round(t->after_ms * 1e3) / 1e3)),
             log_real("seconds", round(t->seconds * 1e3) / 1e3),
             log_if(t->kept != NULL, log_text("why", t->kept != NULL ? t->kept : "")));
}

void server_log_model(const Log *log, const ModelInfo *m, uint32_t cores) {
    switch (m->state) {
    case MODEL_LOADING: log_loading(log, m); break;
    case MODEL_READY: log_ready(log, m, cores); break;
    case MODEL_UNLOADING:
        log_with(log, LOG_INFO, "model unloading", log_text("model", m->name),
                 log_text("version", m->version));
        break;
    case MODEL_UNAVAILABLE:
        log_with(log, m->unloaded ? LOG_INFO : LOG_ERROR,
                 m->unloaded ? "model unloaded" : "model unavailable", log_text("model", m->name),
                 log_text("version", m->version),
                 log_if(!m->unloaded, log_text("why", m->reason != NULL ? m->reason : "")));
        break;
    }
}
