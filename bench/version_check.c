// Is every kernel version of every heavy layer of every network correct? Each distinct layer, with
// its epilogue, is extracted from its network and run in all versions, on one and on three threads,
// against the reference kernels. Networks that are not too large also run as a whole.
// bench_version_check [NAME...] [--max-mmac N] [--whole-mmac N] [--skip-mmac N]
#include <stdio.h>

#include "base/table.h"
#include "model/work.h"
#include "model/zoo/zoo.h"
#include "tests/compile/version_check.h"

static const double whole_tolerance = 1e-3;  // relative to the largest output

typedef struct Asked {
    double      max_mmac, whole_mmac, skip_mmac;
    const char *names[64];
    uint32_t    n;
} Asked;

static void tell(const char *what) { fprintf(stderr, "%s\n", what); }

// The whole network on default versions. *apart negative: too large, not run.
static Err whole(const ShapedGraph *s, const VersionCheck *q, const Asked *asked, Arena *a,
                 double *apart) {
    const Graph *g = s->graph;
    Work         w = {0};
    Tensor      *types = arena_new(a, Tensor, g->n_inputs), *in = NULL;
    Tensor *got = arena_new(a, Tensor, g->n_outputs), *want = arena_new(a, Tensor, g->n_outputs);
    *apart = -1;
    TRY(work_total(s, a, &w));
    if ((double)w.macs > 1e6 * asked->whole_mmac) return ERR_OK;
    for (uint32_t i = 0; i < g->n_inputs; i++) types[i] = s->values[g->inputs[i]];
    TRY(version_check_fill(types, g->n_inputs, (Rng){12}, a, &in));
    TRY(interp_run(s, in, &(InterpLimits){0}, a, want));
    TRY(program_run_once(s, in, &(ProgramOptions){.isa = q->isa}, a, got));
    *apart = 0;
    for (uint32_t i = 0; i < g->n_outputs; i++)
        if (want[i].dtype == DT_F32)
            *apart = fmax(*apart, version_check_apart(&want[i], got[i].data));
    return ERR_OK;
}

static Err specialise(Model *m, Arena *a, ShapedGraph **s) {
    const Graph *g = m->graph;
    Tensor      *types = arena_new(a, Tensor, g->n_inputs);
    TRY(model_materialise(m));
    for (uint32_t i = 0; i < g->n_inputs; i++) types[i] = g->values[g->inputs[i]].type;
    return shaped_graph_make(g, types, interp_eval, a, s);
}

static void add_row(Table *t, const char *name, const VersionCheck *before, const VersionCheck *q,
                    double apart) {
    table_row(t);
    table_text(t, name);
    table_int(t, q->layers - before->layers);
    table_int(t, q->shapes - before->shapes);
    table_int(t, q->shrunk - before->shrunk);
    table_int(t, q->skipped - before->skipped);
    table_int(t, q->versions - before->versions);
    table_real(t, q->worst * 1e6);
    table_real(t, q->worst_wino4 * 1e6);
    table_real(t, apart * 1e6);
    table_int(t, q->failed - before->failed);
}

static Err network(const char *name, VersionCheck *q, const Asked *asked, Arena *a, Table *t) {
    Model        m = {0};
    ShapedGraph *s = NULL;
    VersionCheck before = *q;
    double       apart = -1;
    size_t       mark = a->used;
    TRY(zoo_build(name, NULL, &m));
    q->worst = q->worst_wino4 = 0;
    Err e = specialise(&m, a, &s);
    if (e == ERR_OK) e = whole(s, q, asked, a, &apart);
    if (e == ERR_OK) e = version_check_layers(q, s, a);
    model_finish(&m);
    arena_rewind(a, mark);
    TRY(e);
    if (apart >= 0 && !(apart <= whole_tolerance)) {
        q->failed++;
        fprintf(stderr, "%s as a whole is %.3g of its largest output apart\n", name, apart);
    }
    fprintf(stderr, "%s: %u versions of %u shapes, %u failed\n", name,
            q->versions - before.versions, q->shapes - before.shapes, q->failed - before.failed);
    add_row(t, name, &before, q, apart);
    return ERR_OK;
}

static bool parse(int argc, char **argv, Asked *asked) {
    *asked = (Asked){.max_mmac = 400, .whole_mmac = 6000};
    for (int i = 1; i < argc; i++) {
        double *option = strcmp(argv[i], "--max-mmac") == 0     ? &asked->max_mmac
                         : strcmp(argv[i], "--whole-mmac") == 0 ? &asked->whole_mmac
                         : strcmp(argv[i], "--skip-mmac") == 0  ? &asked->skip_mmac
                                                                : NULL;
        if (option != NULL && i + 1 < argc)
            *option = atof(argv[++i]);
        else if (option == NULL && argv[i][0] != '-' && asked->n < 64)
            asked->names[asked->n++] = argv[i];
        else
            return false;
    }
    return true;
}

static Err all(const Asked *asked, VersionCheck *q, Arena *a, Table *t) {
    for (uint32_t i = 0; i < asked->n; i++) TRY(network(asked->names[i], q, asked, a, t));
    for (size_t i = 0; asked->n == 0 && zoo_entry(i) != NULL; i++)
        TRY(network(zoo_entry(i)->name, q, asked, a, t));
    return ERR_OK;
}

int main(int argc, char **argv) {
    static const Column cols[] = {
        {.key = "name", .head = "network"},
        {.key = "layers", .head = "heavy layers"},
        {.key = "shapes", .head = "new shapes"},
        {.key = "shrunk", .head = "made smaller"},
        {.key = "skipped", .head = "left out"},
        {.key = "versions", .head = "versions"},
        {.key = "worst", .head = "worst", .unit = "ppm", .decimals = 2},
        {.key = "wino4", .head = "winograd4", .unit = "ppm", .decimals = 2},
        {.key = "whole", .head = "whole", .unit = "ppm", .decimals = 2},
        {.key = "failed", .head = "failed"},
    };
    Arena        a = {0}, text = {0};
    Asked        asked;
    VersionCheck q = {0};
    Table        table;
    if (!parse(argc, argv, &asked)) {
        fputs("usage: bench_version_check [NAME...] [--max-mmac N] [--whole-mmac N] [--skip-mmac "
              "N]\n",
              stderr);
        return 2;
    }
    const Isa *isa = NULL;
    Err        e = isa_choose(&isa);
    if (e == ERR_OK) e = arena_init(&a, (size_t)1 << 38);
    if (e == ERR_OK) e = arena_init(&text, 1 << 24);
    if (e == ERR_OK) e = version_check_init(&q, isa, tell);
    q.max_macs = 1e6 * asked.max_mmac;
    q.skip_macs = 1e6 * asked.skip_mmac;
    table_init(&table, &text, cols, sizeof cols / sizeof *cols);
    if (e == ERR_OK) e = all(&asked, &q, &a, &table);
    if (e == ERR_OK) e = table_print(&table, stdout);
    if (e != ERR_OK) fprintf(stderr, "%s\n", err_why());
    version_check_finish(&q);
    arena_finish(&text);
    arena_finish(&a);
    return e != ERR_OK || q.failed > 0;
}
