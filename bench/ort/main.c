// Is cotenant faster than ONNX Runtime? The same files, inputs and threads, alternating in one run.
#include <getopt.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cpu.h"
#include "base/json.h"
#include "base/term.h"
#include "bench/ort/lib.h"
#include "bench/ort/report.h"

enum { SKIPPED = 77, SIZES_MAX = 8 };

typedef struct Options {
    const char       *lib, *out, *profile;
    bool              json;
    MeasurementParams params;
    int               threads[SIZES_MAX], n_threads;
} Options;

static const char usage[] =
    "usage: bench_ort --lib LIBONNXRUNTIME [options] FILE.onnx...   (or: make bench-ort)\n"
    "  --json           one JSON document on stdout instead of the table\n"
    "  --out FILE       the JSON document also there\n"
    "  --threads LIST   numbers of threads (default 1,2, as far as there are cores)\n"
    "  --seconds S      for each side of each row, at least (default 2)\n"
    "  --tolerance T    difference allowed, as a share of the largest output (default 1e-3)\n"
    "  --tune S         ours is tuned for S seconds per row before it is timed (default: not "
    "tuned)\n"
    "  --profile PREFIX ONNX Runtime writes what each node took to PREFIX...json\n";

static bool parse_threads(const char *text, Options *o) {
    o->n_threads = 0;
    for (char *end; *text != '\0'; text = *end == ',' ? end + 1 : end) {
        long n = strtol(text, &end, 10);
        if (end == text || n < 1 || n > 64 || o->n_threads == SIZES_MAX) return false;
        if (*end != ',' && *end != '\0') return false;
        o->threads[o->n_threads++] = (int)n;
    }
    return o->n_threads > 0;
}

static bool parse_real(const char *text, double *out) {
    char *end;
    *out = strtod(text, &end);
    return end != text && *end == '\0' && *out >= 0 && isfinite(*out);
}

static bool parse(int argc, char **argv, Options *o) {
    static const struct option known[] = {
        {"lib", 1, NULL, 'l'},     {"json", 0, NULL, 'j'},    {"out", 1, NULL, 'o'},
        {"threads", 1, NULL, 't'}, {"seconds", 1, NULL, 's'}, {"tolerance", 1, NULL, 'e'},
        {"profile", 1, NULL, 'p'}, {"tune", 1, NULL, 'u'},    {NULL, 0, NULL, 0},
    };
    bool fine = true;
    for (int c; fine && (c = getopt_long(argc, argv, "", known, NULL)) != -1;) {
        if (c == 'l')
            o->lib = optarg;
        else if (c == 'j')
            o->json = true;
        else if (c == 'o')
            o->out = optarg;
        else if (c == 'p')
            o->profile = optarg;
        else if (c == 't')
            fine = parse_threads(optarg, o);
        else if (c == 's')
            fine = parse_real(optarg, &o->params.seconds);
        else if (c == 'e')
            fine = parse_real(optarg, &o->params.tolerance);
        else if (c == 'u')
            fine = parse_real(optarg, &o->params.tune);
        else
            fine = false;
    }
    return fine && o->lib != NULL && optind < argc;
}

// The name of the file without extension; of model.onnx, the name of its folder.
static const char *name_of(const char *path, Arena *a) {
    const char *slash = strrchr(path, '/'), *file = slash != NULL ? slash + 1 : path;
    if (strcmp(file, "model.onnx") == 0 && slash != NULL) {
        const char *start = slash;
        while (start > path && start[-1] != '/') start--;
        if (start < slash) return arena_printf(a, "%.*s", (int)(slash - start), start);
    }
    const char *dot = strrchr(file, '.');
    return arena_printf(a, "%.*s", (int)(dot != NULL ? dot - file : (long)strlen(file)), file);
}

static Err default_threads(Options *o, Arena *a) {
    Cpu cpu;
    if (o->n_threads > 0) return ERR_OK;
    TRY(cpu_read(a, &cgroup_roots, &cpu));
    bool two = cpu_budget(&cpu, &cgroup_roots).cores >= 2;
    if (!two) (void)fprintf(stderr, "one core here: the rows for 2 threads are left out\n");
    o->threads[0] = 1;
    o->threads[1] = 2;
    o->n_threads = two ? 2 : 1;
    return ERR_OK;
}

static void fight_all(const Options *o, char **paths, uint32_t n, Arena *a, Report *r) {
    Progress p;
    r->measurements = arena_new(a, Measurement, n * (uint32_t)o->n_threads);
    progress_begin(&p, stderr, clock_monotonic(), "bench-ort", (int64_t)n * o->n_threads);
    for (uint32_t i = 0; i < n; i++) {
        for (int k = 0; k < o->n_threads; k++) {
            EngineOptions cfg = {.threads = o->threads[k],
                                 .tune_seconds = o->params.tune,
                                 .lib = o->lib,
                                 .profile = o->profile};
            Measurement  *d = &r->measurements[r->n++];
            d->name = name_of(paths[i], a);
            measurement_run(d, paths[i], &cfg, &o->params, a);
            progress_step(&p, 1);
        }
    }
    progress_end(&p);
}

static Err tell(const Options *o, const Report *r, Arena *a) {
    json_t *doc = NULL;
    TRY(report_json(r, &doc));
    Err e = o->out != NULL ? json_save(o->out, doc) : ERR_OK;
    if (e == ERR_OK) e = o->json ? json_write(stdout, doc) : report_print(r, a, stdout);
    json_decref(doc);
    return e;
}

int main(int argc, char **argv) {
    Options o = {.params = {.seconds = 2, .tolerance = 1e-3}};
    if (argc == 1) {
        (void)fprintf(stderr, "needs ONNX Runtime and network files: make bench-ort\n");
        return SKIPPED;
    }
    if (!parse(argc, argv, &o)) {
        (void)fputs(usage, stderr);
        return 2;
    }
    (void)signal(SIGPIPE, SIG_IGN);
    Arena  a = {0};
    Lib    lib;
    Report r = {.params = o.params};
    Err    e = arena_init(&a, cpu_mem_budget(&cgroup_roots));
    if (e == ERR_OK) e = lib_open(o.lib, &lib);
    if (e == ERR_OK) e = default_threads(&o, &a);
    if (e == ERR_OK) {
        r.version = arena_str(&a, lib.version);
        fight_all(&o, argv + optind, (uint32_t)(argc - optind), &a, &r);
        e = tell(&o, &r, &a);
    }
    if (e != ERR_OK) (void)fprintf(stderr, "%s\n", err_why());
    bool clean = e == ERR_OK && report_clean(&r);
    arena_finish(&a);
    return clean ? 0 : 1;
}
