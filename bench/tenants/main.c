// How many requests per second can one machine answer in time, with cotenant's engine and with one
// ONNX Runtime session per network? The same files, inputs, arrivals and targets, alternating.
#include <getopt.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cpu.h"
#include "base/file.h"
#include "base/json.h"
#include "bench/tenants/trials.h"

enum { SKIPPED = 77, MIXES_MAX = 4 };

typedef struct Options {
    const char *lib, *out, *page, *store, *models, *contenders;
    const char *mixes[MIXES_MAX];
    uint32_t    n_mixes;
    bool        json;
    double      tune;
    TrialParams params;
} Options;

static const char usage[] =
    "usage: bench_tenants --lib LIBONNXRUNTIME --models FOLDER [options] MIX...\n"
    "                     (or: make bench-tenants)\n"
    "  --json             one JSON document on stdout instead of the table\n"
    "  --out FILE         the JSON document also there\n"
    "  --page FILE.html   a page with the charts\n"
    "  --contenders LIST  of slack, veltair, planaria, prema, fcfs, ort_default, ort_single,\n"
    "                     ort_nospin (default slack and the three of ONNX Runtime)\n"
    "  --seconds S        of arrivals in each trial (default 5)\n"
    "  --seeds N          searches for each contender (default 3)\n"
    "  --slack K          QoS: K times what a network takes alone (default 5)\n"
    "  --least-qos MS     least QoS: below it the wake-up of threads would decide (default 5)\n"
    "  --tolerance T      of the searches, as a share of the rate (default 0.04)\n"
    "  --tune S           seconds for each network that the profile store does not know\n"
    "  --quick            one search with short trials: at most about three minutes for a mix;\n"
    "                     options after it apply\n"
    "  --by-tenant        prints each trial, with the requests in time of each tenant\n"
    "  --store FILE       profile store (default: in the cache directory)\n";

static bool parse_real(const char *text, double least, double *out) {
    char *end;
    *out = strtod(text, &end);
    return end != text && *end == '\0' && *out >= least && isfinite(*out);
}

static void be_quick(TrialParams *p) {
    p->seconds = 2;
    p->seeds = 1;
    p->tolerance = 0.08;
    p->least_requests = 40;
    p->trials = 9;
    p->range = 8;
}

static bool parse_option(int c, Options *o) {
    double x = 0;
    switch (c) {
    case 'l': o->lib = optarg; return true;
    case 'm': o->models = optarg; return true;
    case 'j': o->json = true; return true;
    case 'o': o->out = optarg; return true;
    case 'p': o->page = optarg; return true;
    case 'c': o->contenders = optarg; return true;
    case 'd': o->store = optarg; return true;
    case 'q': be_quick(&o->params); return true;
    case 'b': o->params.by_tenant = true; return true;
    case 's': return parse_real(optarg, 0.1, &o->params.seconds);
    case 'k': return parse_real(optarg, 0.1, &o->params.slack);
    case 'f': return parse_real(optarg, 0, &o->params.least_qos_ms);
    case 'e': return parse_real(optarg, 0.001, &o->params.tolerance);
    case 't': return parse_real(optarg, 0, &o->tune);
    case 'n':
        if (!parse_real(optarg, 1, &x) || x > 100) return false;
        o->params.seeds = (uint32_t)x;
        return true;
    default: return false;
    }
}

static bool parse(int argc, char **argv, Options *o) {
    static const struct option known[] = {
        {"lib", 1, NULL, 'l'},       {"models", 1, NULL, 'm'},    {"json", 0, NULL, 'j'},
        {"out", 1, NULL, 'o'},       {"page", 1, NULL, 'p'},      {"contenders", 1, NULL, 'c'},
        {"store", 1, NULL, 'd'},     {"seconds", 1, NULL, 's'},   {"slack", 1, NULL, 'k'},
        {"tolerance", 1, NULL, 'e'}, {"tune", 1, NULL, 't'},      {"seeds", 1, NULL, 'n'},
        {"quick", 0, NULL, 'q'},     {"by-tenant", 0, NULL, 'b'}, {"least-qos", 1, NULL, 'f'},
        {NULL, 0, NULL, 0},
    };
    for (int c; (c = getopt_long(argc, argv, "", known, NULL)) != -1;)
        if (!parse_option(c, o)) return false;
    for (; optind < argc && o->n_mixes < MIXES_MAX; optind++) o->mixes[o->n_mixes++] = argv[optind];
    return o->lib != NULL && o->models != NULL && o->n_mixes > 0 && optind == argc;
}

static Err name_contenders(const char *list, Arena *a, Trials *r) {
    for (const char *at = list;; at++) {
        size_t n = strcspn(at, ",");
        r->contenders[r->n] = contender_find(arena_printf(a, "%.*s", (int)n, at));
        if (r->contenders[r->n] == NULL) return err_set(ERR_ARG, "no contender '%.*s'", (int)n, at);
        if (++r->n == TRIALS_CONTENDERS) return err_set(ERR_ARG, "too many contenders");
        at += n;
        if (*at == '\0') return ERR_OK;
    }
}

static const struct {
    const char *mix, *file;
    int64_t     longest;
} files[] = {
#define X(...) {__VA_ARGS__},
#include "bench/tenants/tenant_mix.def"
#undef X
};

static void add_tenant(const Options *o, const char *network, int64_t longest, Arena *a,
                       ContenderOptions *to) {
    CHECK(to->n < MIX_TENANTS);
    to->names[to->n] = network;
    to->files[to->n] = arena_printf(a, "%s/%s.onnx", o->models, network);
    to->longest[to->n++] = longest;
}

static Err add_tenants(const Options *o, const char *name, Arena *a, ContenderOptions *to) {
    Mix mix;
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        if (strcmp(files[i].mix, name) == 0) add_tenant(o, files[i].file, files[i].longest, a, to);
    if (to->n > 0) return ERR_OK;
    TRY(mix_find(name, MIX_HERE, &mix));
    for (uint32_t i = 0; i < mix.n; i++) add_tenant(o, mix.tenants[i].network, 0, a, to);
    return ERR_OK;
}

static Err run_mix(const Options *o, const char *name, Progress *p, Arena *a, const char *baseline,
                   ComparisonCell *out) {
    Trials *r = arena_new(a, Trials, 1);
    *r = (Trials){.params = &o->params,
                  .cfg = {.lib = o->lib, .store = o->store, .tune_seconds = o->tune}};
    TRY(add_tenants(o, name, a, &r->cfg));
    TRY(name_contenders(o->contenders, a, r));
    Err e = trials_open(r);
    if (e == ERR_OK) e = trials_run(r, arena_str(a, name), baseline, p, a, out);
    trials_close(r);
    return e;
}

static Err save_page(const char *path, const Comparison *c, Arena *a) {
    AtomicFile f;
    Page       p;
    TRY(file_begin(&f, path));
    page_begin(&p, f.out, a, "Tenants side by side: cotenant and ONNX Runtime");
    Err e = report_page(c, a, &p);
    if (e == ERR_OK) e = page_end(&p);
    if (e == ERR_OK) e = file_commit(&f);
    file_drop(&f);
    return e;
}

// cotenant's best contender against ONNX Runtime's best.
static void conclude(const Comparison *c, const ComparisonCell *cell, FILE *f) {
    const char *names[2] = {NULL, NULL};
    double      rates[2] = {0, 0};
    for (uint32_t i = 0; i < cell->n_entries; i++) {
        const ComparisonEntry *e = &cell->entries[i];
        double                 qps = comparison_mean(c, cell, e, METRIC_QPS).mean;
        bool                   peer = strncmp(e->policy, "ort_", 4) == 0;
        if (names[peer] != NULL && qps <= rates[peer]) continue;
        names[peer] = e->policy;
        rates[peer] = qps;
    }
    if (names[0] != NULL && rates[1] > 0)
        (void)fprintf(f, "%s: %s answers %.2f times as many requests in time as %s\n", cell->title,
                      names[0], rates[0] / rates[1], names[1]);
}

static Err tell(const Options *o, const Comparison *c, Arena *a) {
    json_t *doc = NULL;
    if (o->page != NULL) TRY(save_page(o->page, c, a));
    TRY(report_json(c, &doc));
    Err e = o->out != NULL ? json_save(o->out, doc) : ERR_OK;
    if (e == ERR_OK) e = o->json ? json_write(stdout, doc) : report_print(c, a, stdout);
    json_decref(doc);
    for (uint32_t i = 0; e == ERR_OK && i < c->n_cells; i++) conclude(c, &c->cells[i], stderr);
    return e;
}

static uint32_t count_contenders(const char *list) {
    uint32_t n = 1;
    for (; *list != '\0'; list++) n += *list == ',';
    return n;
}

// Ratios are relative to the first contender of ONNX Runtime, or to the first contender if there is
// none.
static const char *baseline_of(const char *list) {
    static const char *const peers[] = {"ort_single", "ort_nospin", "ort_default"};
    for (uint32_t i = 0; i < 3; i++)
        if (strstr(list, peers[i]) != NULL) return peers[i];
    return "slack";
}

static Err run_all(const Options *o, Arena *a) {
    Cpu             cpu;
    Progress        p;
    ComparisonCell *cells = arena_new(a, ComparisonCell, o->n_mixes);
    Comparison      c = {.tier = TIER_NODE,
                         .subject = baseline_of(o->contenders),
                         .subject_role = "baseline",
                         .seeds = o->params.seeds,
                         .first_seed = 1,
                         .cells = cells,
                         .n_cells = o->n_mixes};
    c.about =
        arena_printf(a,
                     "The target share is %.0f %%. Latencies, conflicts and cores are measured "
                     "at %.0f %% of a contender's own highest rate; equal load and full load "
                     "are %.0f %% and %.0f %% of the rate that %s reaches.",
                     100 * o->params.target, 100 * o->params.calm, 100 * o->params.equal_share[0],
                     100 * o->params.equal_share[1], c.subject);
    TRY(cpu_read(a, &cgroup_roots, &cpu));
    c.machine = arena_printf(a, "%s, %u cores", cpu.model, cpu_budget(&cpu, &cgroup_roots).cores);
    uint32_t each = o->params.seeds * (count_contenders(o->contenders) + COMPARISON_EQUALS + 1);
    progress_begin(&p, stderr, clock_monotonic(), "bench-tenants", (int64_t)each * o->n_mixes);
    Err e = ERR_OK;
    for (uint32_t i = 0; e == ERR_OK && i < o->n_mixes; i++)
        e = run_mix(o, o->mixes[i], &p, a, c.subject, &cells[i]);
    progress_end(&p);
    return e == ERR_OK ? tell(o, &c, a) : e;
}

int main(int argc, char **argv) {
    Options o = {.contenders = "slack,ort_default,ort_single,ort_nospin",
                 .params = {.target = 0.95,
                            .calm = 0.8,
                            .equal_share = {0.8, 1},
                            .tolerance = 0.04,
                            .seconds = 5,
                            .slack = MIX_SLACK,
                            .least_qos_ms = 5,
                            .seeds = 3,
                            .least_requests = 80,
                            .trials = 20,
                            .range = 64}};
    if (argc == 1) {
        (void)fprintf(stderr, "needs ONNX Runtime and network files: make bench-tenants\n");
        return SKIPPED;
    }
    if (!parse(argc, argv, &o)) {
        (void)fputs(usage, stderr);
        return 2;
    }
    (void)signal(SIGPIPE, SIG_IGN);
    Arena a = {0};
    Err   e = arena_init(&a, cpu_mem_budget(&cgroup_roots));
    if (e == ERR_OK) e = run_all(&o, &a);
    if (e != ERR_OK) (void)fprintf(stderr, "bench_tenants: %s\n", err_why());
    arena_finish(&a);
    return e == ERR_OK ? 0 : 1;
}
