// cotenant check: whether a server would start with this configuration; lists all problems at once.
// The configuration, the files and the policy are checked by the functions that serve calls.
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/cpu.h"
#include "base/file.h"
#include "cli/commands.h"
#include "cli/model_args.h"
#include "cli/serve_args.h"
#include "compile/interp/interp.h"
#include "model/shaped_graph.h"
#include "model/work.h"
#include "net/address.h"
#include "node/host.h"
#include "node/source.h"
#include "serve/inference_server.h"
#include "serve/models/model_signature.h"

typedef enum FindingKind {
    FINDING_OK,
    FINDING_WARNING,
    FINDING_PROBLEM,
    FINDING_KINDS
} FindingKind;

typedef struct Finding {
    FindingKind     kind;
    const char     *of;  // subject of the check, one word
    const char     *text;
    struct Finding *next;
} Finding;

typedef struct Findings {
    Arena   *arena;
    Finding *first, *last;
    uint32_t n[FINDING_KINDS];
} Findings;

static const char *const words[] = {"ok", "warning", "problem"};

static void findings_add(Findings *f, FindingKind kind, const char *of, const char *fmt, ...)
    PRINTF(4, 5);

static void findings_add(Findings *f, FindingKind kind, const char *of, const char *fmt, ...) {
    char     text[1024];
    va_list  ap;
    Finding *x = arena_try_new(f->arena, Finding, 1);
    va_start(ap, fmt);
    (void)vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    char *copy = arena_try_new(f->arena, char, strlen(text) + 1);
    f->n[kind]++;
    if (x == NULL || copy == NULL) return;
    memcpy(copy, text, strlen(text) + 1);
    *x = (Finding){.kind = kind, .of = of, .text = copy};
    if (f->last != NULL)
        f->last->next = x;
    else
        f->first = x;
    f->last = x;
}

static void findings_failed(Findings *f, const char *of, Err e) {
    findings_add(f, FINDING_PROBLEM, of, "%s", err_why()[0] != '\0' ? err_why() : err_text(e));
}

static int print_json(const Findings *f) {
    json_t *list = json_array();
    for (const Finding *x = f->first; x != NULL; x = x->next)
        json_array_append_new(list, json_pack("{s:s,s:s,s:s}", "state", words[x->kind], "of", x->of,
                                              "text", x->text));
    return command_json(json_pack("{s:b,s:i,s:i,s:o}", "ok", f->n[FINDING_PROBLEM] == 0, "problems",
                                  (int)f->n[FINDING_PROBLEM], "warnings",
                                  (int)f->n[FINDING_WARNING], "findings", list));
}

static int findings_print(const Findings *f, bool json) {
    if (json) return print_json(f);
    for (const Finding *x = f->first; x != NULL; x = x->next)
        printf("%-8s %-14s %s\n", words[x->kind], x->of, x->text);
    printf("problems: %u, warnings: %u\n", f->n[FINDING_PROBLEM], f->n[FINDING_WARNING]);
    return 0;
}

typedef struct CheckedModel {
    Arena      arena;
    Source     source;
    ShapeCache all;
} CheckedModel;

static Err specialise(CheckedModel *r, int64_t otherwise, const ShapedGraph **out) {
    ModelArgs o = MODEL_ARGS_DEFAULT;
    Tensor   *in = arena_try_new(&r->arena, Tensor, (size_t)r->source.model.graph->n_inputs + 1);
    if (in == NULL) return err_set(ERR_LIMIT, "no memory for the inputs of the model");
    TRY(model_args_input_types(&r->source.model, &o, otherwise, in));
    return shape_cache_get(&r->all, in, out);
}

// Largest sum of bytes of values alive at once.
static uint64_t peak_bytes(const ShapedGraph *s) {
    const Graph *g = s->graph;
    uint64_t     live = 0, most = 0;
    for (uint32_t i = 0; i < g->n_nodes; i++) {
        const Node *n = &g->nodes[i];
        size_t      bytes = 0;
        for (uint32_t k = 0; k < n->n_out && !s->folded[i]; k++)
            if (n->out[k] != NO_VALUE && tensor_known(&s->values[n->out[k]]) &&
                tensor_measure(&s->values[n->out[k]], &bytes) == ERR_OK)
                live += bytes;
        if (live > most) most = live;
        for (uint32_t k = 0; k < n->n_in; k++) {
            uint32_t v = n->in[k];
            bool     ends = v != NO_VALUE && s->last_use[v] == i && !g->values[v].constant &&
                        g->values[v].producer != NO_NODE && !s->folded[g->values[v].producer];
            if (ends && tensor_known(&s->values[v]) &&
                tensor_measure(&s->values[v], &bytes) == ERR_OK)
                live -= bytes < live ? bytes : live;
        }
    }
    return most;
}

// Weights as loaded and as packed for the kernels, and memory for `concurrency` runs.
static uint64_t estimate(CheckedModel *r, const Config *c) {
    const ShapedGraph *one = NULL;
    Work               w = {0};
    if (specialise(r, 1, &one) != ERR_OK || work_total(one, &r->arena, &w) != ERR_OK) return 0;
    uint64_t weights = w.weight_bytes > 0 ? (uint64_t)w.weight_bytes : 0;
    return 2 * weights + (uint64_t)c->serve.concurrency * peak_bytes(one);
}

static Err check_signature(CheckedModel *r, const ConfigModel *m) {
    ModelSignature port = {0};
    TRY(signature_from_graph(r->source.model.graph, &r->arena, &port));
    return m->declared != NULL ? signature_narrow(&port, m->declared) : ERR_OK;
}

static Err check_shapes(CheckedModel *r, const ConfigModel *m) {
    const ShapedGraph *s = NULL;
    shape_cache_init(&r->all, &r->source.model, interp_eval);
    TRY(specialise(r, DIM_UNKNOWN, &s));
    return check_signature(r, m);
}

// Reads it as the server does, with the same limit.
static Err read_model(CheckedModel *r, const ConfigModel *m, const char *label) {
    uint64_t      own = (uint64_t)m->set.memory_mb << 20, all = cpu_mem_budget(&cgroup_roots);
    SourceOptions o = {
        .name = label, .root = m->root, .max_bytes = own > 0 && own < all ? own : all};
    TRY(arena_init_growing(&r->arena, 1 << 20, (size_t)1 << 34));
    TRY(source_read(&r->source, m->path, &o));
    Err e = check_shapes(r, m);
    return e == ERR_OK ? e : err_add(e, "%s", label);
}

static void report_model(Findings *f, const ConfigModel *m, const CheckedModel *r, uint64_t bytes) {
    uint64_t mib = (bytes >> 20) + 1;
    if (m->set.memory_mb > 0 && mib > (uint64_t)m->set.memory_mb)
        findings_add(f, FINDING_WARNING, "model",
                     "%s %s needs about %llu MiB, but memory_mb is %d; raise it", m->name,
                     m->version, (unsigned long long)mib, m->set.memory_mb);
    else if (bytes == 0)
        findings_add(f, FINDING_OK, "model", "%s %s: %u nodes, memory depends on the inputs",
                     m->name, m->version, r->source.model.graph->n_nodes);
    else
        findings_add(f, FINDING_OK, "model", "%s %s: %u nodes, about %llu MiB", m->name, m->version,
                     r->source.model.graph->n_nodes, (unsigned long long)mib);
}

static void check_model(Findings *f, const Config *c, const ConfigModel *m, uint64_t *bytes) {
    CheckedModel r = {0};
    char         label[256];
    // A server starts without a model that is not required.
    FindingKind failed = m->set.required ? FINDING_PROBLEM : FINDING_WARNING;
    *bytes = 0;
    (void)snprintf(label, sizeof label, "%s %s", m->name, m->version);
    if (m->broken != NULL) {
        findings_add(f, failed, "model", "%s: %s", label, m->broken);
        return;
    }
    if (read_model(&r, m, label) == ERR_OK) {
        *bytes = estimate(&r, c);
        report_model(f, m, &r, *bytes);
    } else {
        findings_add(f, failed, "model", "%s", err_why());
    }
    shape_cache_finish(&r.all);
    source_finish(&r.source);
    arena_finish(&r.arena);
}

static void check_policy(Findings *f, const ServeArgs *x, const Config *c, Arena *a) {
    PolicyChoice p = {0};
    Err          e = serve_args_policy(x, c, a, &p);
    if (e != ERR_OK)
        findings_failed(f, "policy", e);
    else
        findings_add(f, FINDING_OK, "policy", "%s", c->serve.policy);
}

static void report_cores(Findings *f, const Config *c) {
    int sum = 0, cores = c->serve.cores > 0 ? c->serve.cores : (int)c->loaded_from.cores;
    for (uint32_t i = 0; i < c->n_models; i++)
        if (i == 0 || strcmp(c->models[i - 1].name, c->models[i].name) != 0)
            sum += c->models[i].set.min_cores;
    if (sum <= cores && cores <= (int)c->loaded_from.cores)  // otherwise already reported
        findings_add(f, FINDING_OK, "cores", "%d cores, %d of them reserved by models", cores, sum);
}

static void check_memory(Findings *f, uint64_t bytes) {
    uint64_t there = cpu_mem_budget(&cgroup_roots);
    if (bytes > there)
        findings_add(
            f, FINDING_WARNING, "memory",
            "models need about %llu MiB, but only %llu MiB are available; serve fewer models, or "
            "lower concurrency",
            (unsigned long long)(bytes >> 20), (unsigned long long)(there >> 20));
    else
        findings_add(f, FINDING_OK, "memory", "models need about %llu of %llu MiB",
                     (unsigned long long)(bytes >> 20), (unsigned long long)(there >> 20));
}

static void check_descriptors(Findings *f, const Config *c, uint32_t listeners) {
    struct rlimit limit = {0};
    uint64_t      wanted = (uint64_t)c->serve.connections * listeners + 64;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
    if (limit.rlim_cur != RLIM_INFINITY && limit.rlim_cur < wanted)
        findings_add(
            f, FINDING_WARNING, "descriptors",
            "connections of all addresses need %llu file descriptors, but the limit is %llu; "
            "raise ulimit -n, or lower connections",
            (unsigned long long)wanted, (unsigned long long)limit.rlim_cur);
    else
        findings_add(f, FINDING_OK, "descriptors", "at most %llu needed",
                     (unsigned long long)wanted);
}

// Listens for a moment, unless the address needs `expose`. False: the address is not available.
static bool check_address(Findings *f, const char *key, const char *text, bool expose) {
    Address a = {0};
    int     fd = -1;
    Err     e = address_read(text, &a);
    if (e != ERR_OK || (!expose && !address_is_local(&a)))
        return true;  // already reported with the configuration
    e = address_listen(&a, &fd);
    if (e != ERR_OK) {
        findings_failed(f, key, e);
        return false;
    }
    (void)close(fd);
    if (a.any.sa_family == AF_UNIX) (void)unlink(a.local.sun_path);
    findings_add(f, FINDING_OK, key, "%s is free", text);
    return true;
}

// What the server does without if it cannot have it; files that the user named are checked with the
// configuration.
static void check_cache(Findings *f, const Config *c, Arena *a) {
    const char *cache = NULL;
    if (c->serve.store[0] != '\0') {
        findings_add(f, FINDING_OK, "store", "%s", c->serve.store);
        return;
    }
    Err e = file_cache_dir(a, &cache);
    if (e == ERR_OK) e = host_check_store(NULL);
    if (e == ERR_OK)
        findings_add(f, FINDING_OK, "store", "in %s", cache);
    else
        findings_add(f, FINDING_WARNING, "store", "measured profiles are not stored: %s",
                     err_why());
}

static int check_all(Findings *f, const ServeArgs *x, const Config *c, Arena *a) {
    const char *const keys[] = {"http", "grpc", "metrics", "admin"};
    bool own = strcmp(c->serve.admin, "http") != 0;  // otherwise served at the address of http
    const char *const at[] = {c->serve.http, c->serve.grpc, c->serve.metrics,
                              own ? c->serve.admin : "off"};
    uint64_t          bytes = 0, sum = 0;
    uint32_t          listeners = 0;
    bool              free = true;
    for (uint32_t i = 0; i < c->n_problems; i++)
        findings_add(f, FINDING_PROBLEM, "configuration", "%s", c->problems[i]);
    for (uint32_t i = 0; i < c->n_warnings; i++)
        findings_add(f, FINDING_WARNING, "configuration", "%s", c->warnings[i]);
    if (c->n_problems == 0)
        findings_add(f, FINDING_OK, "configuration", "%s",
                     c->loaded_from.file != NULL ? c->loaded_from.file
                                                 : "options, environment and model folders");
    check_policy(f, x, c, a);
    uint32_t wrong = f->n[FINDING_PROBLEM];
    for (uint32_t i = 0; i < c->n_models; i++, sum += bytes)
        check_model(f, c, &c->models[i], &bytes);
    if (c->n_models == 0 && c->n_problems == 0)
        findings_add(f, FINDING_WARNING, "model", "no model to serve");
    uint32_t missing = f->n[FINDING_PROBLEM] - wrong;
    report_cores(f, c);
    check_memory(f, sum);
    if (wrong == 0) check_cache(f, c, a);
    for (uint32_t i = 0; i < 4; i++) {
        if (strcmp(at[i], "off") == 0) continue;
        listeners++;
        free = check_address(f, keys[i], at[i], c->serve.expose) && free;
    }
    check_descriptors(f, c, listeners);
    return wrong > 0 ? EXIT_CONFIG : !free ? SERVER_BIND : missing > 0 ? SERVER_MODEL : 0;
}

int cmd_check(const Command *c, int argc, char **argv) {
    static ServeArgs x;
    bool             json = false;
    Arena            a = {0};
    Config           config = {0};
    ConfigSources    s = {0};
    Findings         f = {.arena = &a};
    int              code = serve_args_parse(c, &json, argc, argv, &x, &a, &s);
    if (code >= 0) return code;
    Err e = serve_args_machine(&a, &s);
    if (e == ERR_OK) e = config_read_start(&config, &s);
    if (e == ERR_OK) {
        code = check_all(&f, &x, &config, &a);
        int written = findings_print(&f, json);
        code = written != 0 ? written : code;
    } else {
        code = command_failed(e);
    }
    config_finish(&config);
    arena_finish(&a);
    return code;
}
