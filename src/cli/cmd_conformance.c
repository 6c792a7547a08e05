// cotenant conformance: the ONNX conformance suite: cases passed, rejected as unsupported, failed.
#include <dirent.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "base/table.h"
#include "base/tensor.h"
#include "base/term.h"
#include "cli/commands.h"
#include "compile/program.h"
#include "model/fold.h"
#include "model/onnx/onnx.h"

enum { PATH_BYTES = 1024 };

typedef struct Tolerance {
    double relative, absolute;  // |got - want| <= absolute + relative * |want|
} Tolerance;

// The reason of the last two is in err_why().
typedef enum Verdict { VERDICT_PASSED, VERDICT_REFUSED, VERDICT_FAILED } Verdict;

static bool close_enough(double got, double want, Tolerance t) {
    if (isnan(got) || isnan(want)) return isnan(got) && isnan(want);
    if (isinf(got) || isinf(want)) return got == want;
    return fabs(got - want) <= t.absolute + t.relative * fabs(want);
}

static Err compare_strings(const Tensor *got, const Tensor *want) {
    const Str *a = got->data, *b = want->data;
    for (int64_t i = 0; i < tensor_count(want); i++)
        if (a[i].len != b[i].len || (a[i].len > 0 && memcmp(a[i].at, b[i].at, a[i].len) != 0))
            return err_set(ERR_INVALID, "element %" PRId64 " is '%.*s', expected '%.*s'", i,
                           (int)a[i].len, a[i].at, (int)b[i].len, b[i].at);
    return ERR_OK;
}

static Err compare_tensors(const Tensor *got, const Tensor *want, Tolerance t);

static Err compare_elements(const Tensor *got, const Tensor *want, Tolerance t) {
    for (int64_t i = 0; i < tensor_count(want); i++) {
        Err e =
            compare_tensors(&((const Tensor *)got->data)[i], &((const Tensor *)want->data)[i], t);
        if (e != ERR_OK) return err_add(e, "element %" PRId64, i);
    }
    return ERR_OK;
}

static Err compare_tensors(const Tensor *got, const Tensor *want, Tolerance t) {
    if (got->dtype != want->dtype)
        return err_set(ERR_INVALID, "type %s, expected %s", dtype_name(got->dtype),
                       dtype_name(want->dtype));
    if (!tensor_same_shape(got, want)) {
        char a[128], b[128];
        tensor_shape_text(got, a, sizeof a);
        tensor_shape_text(want, b, sizeof b);
        return err_set(ERR_INVALID, "shape %s, expected %s", a, b);
    }
    if (want->dtype == DT_STR) return compare_strings(got, want);
    if (want->dtype == DT_SEQ || want->dtype == DT_OPT) return compare_elements(got, want, t);
    if (!dtype_is_number(want->dtype) && want->dtype != DT_BOOL)
        return err_set(ERR_UNSUPPORTED, "type %s cannot be compared", dtype_name(want->dtype));
    for (int64_t i = 0; i < tensor_count(want); i++)
        if (!close_enough(tensor_get_f64(got, i), tensor_get_f64(want, i), t))
            return err_set(ERR_INVALID, "element %" PRId64 " is %.9g, expected %.9g", i,
                           tensor_get_f64(got, i), tensor_get_f64(want, i));
    return ERR_OK;
}

static const Tolerance      onnx_tolerance = {.relative = 1e-3, .absolute = 1e-7};
static const ProgramOptions suite_options = {
    .limits = {.max_bytes = (size_t)1 << 32, .max_iterations = 100000}};

enum { ARENA_SHIFT = 34 };

static Err read_values(const char *set, const char *what, const Graph *g, const uint32_t *values,
                       uint32_t n, Arena *a, Tensor *out) {
    for (uint32_t i = 0; i < n; i++) {
        char path[PATH_BYTES];
        (void)snprintf(path, sizeof path, "%s/%s_%u.pb", set, what, i);
        if (access(path, F_OK) != 0) return err_set(ERR_IO, "%s is missing", path);
        const Tensor *declared = &g->values[values[i]].type;
        TRY(onnx_read_value(path, declared, a, &out[i]));
        // The suite stores bfloat16 as uint16 bits, because NumPy has no bfloat16.
        if (declared->dtype == DT_BF16 && out[i].dtype == DT_U16) out[i].dtype = DT_BF16;
    }
    return ERR_OK;
}

// The ONNX runner compares bfloat16 as stored: the bits as an integer.
static void as_stored(Tensor *t) {
    if (t->dtype == DT_BF16) t->dtype = DT_U16;
}

static bool draws_random(const Graph *g) {
    for (uint32_t i = 0; i < g->n_nodes; i++) {
        switch (g->nodes[i].op) {
        case OP_Bernoulli:
        case OP_Multinomial:
        case OP_RandomNormal:
        case OP_RandomNormalLike:
        case OP_RandomUniform:
        case OP_RandomUniformLike: return true;
        default: break;
        }
    }
    return false;
}

// Random outputs can only agree in type and shape, which does not count as passed.
static Err compare_random(const Graph *g, const Tensor *got, const Tensor *want) {
    static const Tolerance anything = {.absolute = INFINITY};
    for (uint32_t i = 0; i < g->n_outputs; i++) TRY(compare_tensors(&got[i], &want[i], anything));
    return err_set(ERR_UNSUPPORTED, "has random outputs, which cannot be compared");
}

static Err run_set(ShapeCache *shape_cache, const char *set, Arena *a) {
    const Graph *g = shape_cache->model->graph;
    Tensor      *in = arena_new(a, Tensor, g->n_inputs), *want = arena_new(a, Tensor, g->n_outputs);
    Tensor      *got = arena_new(a, Tensor, g->n_outputs);
    const ShapedGraph *s = NULL;
    TRY(read_values(set, "input", g, g->inputs, g->n_inputs, a, in));
    TRY(read_values(set, "output", g, g->outputs, g->n_outputs, a, want));
    TRY(shape_cache_get(shape_cache, in, &s));
    TRY(program_run_once(s, in, &suite_options, a, got));
    if (draws_random(g)) return compare_random(g, got, want);
    for (uint32_t i = 0; i < g->n_outputs; i++) {
        as_stored(&got[i]);
        as_stored(&want[i]);
        Err e = compare_tensors(&got[i], &want[i], onnx_tolerance);
        if (e != ERR_OK) return err_add(e, "output '%s'", g->values[g->outputs[i]].name);
    }
    return ERR_OK;
}

static Err run_sets(const Model *m, const char *dir) {
    ShapeCache shape_cache;
    Arena      a = {0};
    Err        e = arena_init_growing(&a, 1 << 20, (size_t)1 << ARENA_SHIFT);
    shape_cache_init(&shape_cache, m, interp_eval);
    uint32_t n = 0;
    for (; e == ERR_OK; n++) {
        char set[PATH_BYTES];
        (void)snprintf(set, sizeof set, "%s/test_data_set_%u", dir, n);
        if (access(set, F_OK) != 0) break;
        e = run_set(&shape_cache, set, &a);
        arena_rewind(&a, 0);
    }
    if (e == ERR_OK && n == 0) e = err_set(ERR_IO, "%s has no test_data_set_0", dir);
    shape_cache_finish(&shape_cache);
    arena_finish(&a);
    return e;
}

static Verdict suite_case(const char *dir) {
    char  path[PATH_BYTES];
    Model m = {0};
    (void)snprintf(path, sizeof path, "%s/model.onnx", dir);
    Err e = onnx_read(path, &m);
    if (e == ERR_OK) e = fold_constants(&m, interp_eval);
    if (e == ERR_OK) e = run_sets(&m, dir);
    model_finish(&m);
    if (e == ERR_OK) return VERDICT_PASSED;
    return e == ERR_UNSUPPORTED ? VERDICT_REFUSED : VERDICT_FAILED;
}

static const char *const suites[] = {"node", "simple", "pytorch-operator", "pytorch-converted"};
enum { N_SUITES = sizeof suites / sizeof *suites };
static const char default_dir[] = "/usr/share/libonnx-testdata/data";

typedef struct Tally {
    const char *suite;
    int64_t     count[3];  // by Verdict
    json_t     *failures, *refusals;
} Tally;

typedef struct Options {
    bool        json, list;
    const char *suite, *test;
} Options;

static int is_case(const struct dirent *d) { return strncmp(d->d_name, "test_", 5) == 0; }

static void count_case(Tally *t, const char *name, Verdict v, bool list) {
    static const char *const names[] = {"passed", "refused", "FAILED"};
    t->count[v]++;
    if (v == VERDICT_FAILED) json_array_append_new(t->failures, json_string(name));
    if (v == VERDICT_REFUSED) json_array_append_new(t->refusals, json_string(name));
    if (list && v != VERDICT_PASSED) fprintf(stderr, "%-8s %s: %s\n", names[v], name, err_why());
}

static Err run_suite(const char *dir, const Options *o, Tally *t) {
    char            path[PATH_BYTES];
    struct dirent **cases = NULL;
    (void)snprintf(path, sizeof path, "%s/%s", dir, t->suite);
    int n = scandir(path, &cases, is_case, alphasort);
    if (n < 0)
        return err_set(ERR_IO, "no suite at %s; install libonnx-testdata or give its folder", path);
    Progress p;
    progress_begin(&p, stderr, clock_monotonic(), t->suite, n);
    for (int i = 0; i < n; i++) {
        (void)snprintf(path, sizeof path, "%s/%s/%s", dir, t->suite, cases[i]->d_name);
        if (o->test == NULL || strstr(cases[i]->d_name, o->test) != NULL)
            count_case(t, cases[i]->d_name, suite_case(path), o->list);
        free(cases[i]);
        progress_step(&p, 1);
    }
    progress_end(&p);
    free(cases);
    return ERR_OK;
}

static int print_json(const Tally *tallies, uint32_t n) {
    json_t *list = json_array();
    for (uint32_t i = 0; i < n; i++)
        json_array_append_new(
            list, json_pack("{s:s,s:I,s:I,s:I,s:O,s:O}", "name", tallies[i].suite, "passed",
                            (json_int_t)tallies[i].count[VERDICT_PASSED], "refused",
                            (json_int_t)tallies[i].count[VERDICT_REFUSED], "failed",
                            (json_int_t)tallies[i].count[VERDICT_FAILED], "failures",
                            tallies[i].failures, "refusals", tallies[i].refusals));
    return command_json(json_pack("{s:o}", "suites", list));
}

static Err print_table(const Tally *tallies, uint32_t n) {
    static const Column cols[] = {
        {.key = "name", .head = "suite"},
        {.key = "passed", .head = "passed"},
        {.key = "refused", .head = "refused"},
        {.key = "failed", .head = "failed"},
    };
    Arena a = {0};
    TRY(arena_init(&a, 1 << 20));
    Table table;
    table_init(&table, &a, cols, 4);
    for (uint32_t i = 0; i < n; i++) {
        table_row(&table);
        table_text(&table, tallies[i].suite);
        for (int v = 0; v < 3; v++) table_int(&table, tallies[i].count[v]);
    }
    Err e = table_print(&table, stdout);
    arena_finish(&a);
    return e;
}

static Err run_suites(const char *dir, const Options *o, Tally *tallies, uint32_t *n) {
    for (uint32_t i = 0; i < N_SUITES; i++) {
        if (o->suite != NULL && strcmp(o->suite, suites[i]) != 0) continue;
        tallies[*n] = (Tally){suites[i], {0}, json_array(), json_array()};
        TRY(run_suite(dir, o, &tallies[(*n)++]));
    }
    char hint[TEXT_MEANT];
    if (*n > 0) return ERR_OK;
    return err_set(ERR_ARG, "no suite '%s'; %s", o->suite,
                   text_meant(o->suite, suites, N_SUITES,
                              "there are node, simple, pytorch-operator and pytorch-converted",
                              hint));
}

int cmd_conformance(const Command *c, int argc, char **argv) {
    Options      o = {0};
    const ArgRow rows[] = {
        {"suite", ARG_TEXT, &o.suite, "NAME", "run only this suite", 0, 0},
        {"test", ARG_TEXT, &o.test, "TEXT", "run only tests with this text in their name", 0, 0},
        {"list", ARG_FLAG, &o.list, NULL, "print the reason of every refused or failed test", 0, 0},
        {"json", ARG_FLAG, &o.json, NULL, "one JSON document on stdout", 0, 0},
    };
    const char *dir = default_dir;
    int         code = args_parse(c, rows, 4, argc, argv, &dir, 0, 1, NULL);
    if (code >= 0) return code;
    Tally    tallies[N_SUITES];
    uint32_t n = 0;
    int64_t  failed = 0;
    Err      e = run_suites(dir, &o, tallies, &n);
    for (uint32_t i = 0; i < n; i++) failed += tallies[i].count[VERDICT_FAILED];
    if (e == ERR_OK && o.json)
        code = print_json(tallies, n);
    else if (e == ERR_OK)
        e = print_table(tallies, n);
    for (uint32_t i = 0; i < n; i++) {
        json_decref(tallies[i].failures);
        json_decref(tallies[i].refusals);
    }
    if (e != ERR_OK) return command_failed(e);
    return code > 0 ? code : failed > 0 ? EXIT_FAILED : 0;
}
