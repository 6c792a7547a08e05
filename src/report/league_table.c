#include <math.h>
#include <string.h>

#include "report/league.h"

#define AT(member)         offsetof(LeagueRun, member)
#define MEAN(l, e, member) league_mean(l, e, AT(member)).mean

static const Column columns[] = {
    {.key = "policy", .head = "policy"},
    {.key = "knows", .head = "knows"},
    {.key = "jct_mean_s", .head = "JCT", .unit = "s", .decimals = 0},
    {.key = "jct_half_s", .head = "+-", .decimals = 0},
    {.key = "jct_ratio", .head = "ratio", .decimals = 3},
    {.key = "jct_ratio_half", .head = "+-", .decimals = 3},
    {.key = "makespan_s", .head = "makespan", .unit = "s", .decimals = 0},
    {.key = "makespan_half_s", .head = "+-", .decimals = 0},
    {.key = "makespan_ratio", .head = "ratio", .decimals = 3},
    {.key = "makespan_ratio_half", .head = "+-", .decimals = 3},
    {.key = "jct_p50_s", .head = "median", .unit = "s", .decimals = 0},
    {.key = "jct_p99_s", .head = "99 %", .unit = "s", .decimals = 0},
    {.key = "queue_mean_s", .head = "waiting", .unit = "s", .decimals = 0},
    {.key = "gpu_use", .head = "GPUs", .unit = "%", .scale = 0.01, .decimals = 0},
    {.key = "core_use", .head = "cores", .unit = "%", .scale = 0.01, .decimals = 0},
    {.key = "memory_use", .head = "memory", .unit = "%", .scale = 0.01, .decimals = 0},
    {.key = "preemptions", .head = "stops", .decimals = 0},
    {.key = "fairness", .head = "fairness", .decimals = 3},
    {.key = "decision_us", .head = "decision", .unit = "us", .decimals = 1},
};
enum { COLUMNS = sizeof columns / sizeof *columns };

static void real(Table *t, double v) {
    if (isfinite(v))
        table_real(t, v);
    else
        table_missing(t);
}

// A mean with its interval, then its ratio to the champion's.
static void pair(Table *t, const League *l, const LeagueEntry *e, const LeagueEntry *ours,
                 size_t member) {
    Mean x = league_mean(l, e, member), r = {.mean = NAN, .half = NAN};
    if (ours != NULL && ours != e) r = league_ratio(l, e, ours, member);
    real(t, x.mean);
    real(t, x.half);
    real(t, r.mean);
    real(t, r.half);
}

static void row(Table *t, const League *l, const LeagueEntry *e, const LeagueEntry *ours) {
    table_row(t);
    table_text(t, e->policy);
    table_text(t, e->knows);
    pair(t, l, e, ours, AT(jct_mean_s));
    pair(t, l, e, ours, AT(makespan_s));
    real(t, MEAN(l, e, jct_p50_s));
    real(t, MEAN(l, e, jct_p99_s));
    real(t, MEAN(l, e, queue_mean_s));
    real(t, MEAN(l, e, gpu_use));
    real(t, MEAN(l, e, core_use));
    real(t, MEAN(l, e, memory_use));
    real(t, MEAN(l, e, preemptions));
    real(t, MEAN(l, e, fairness));
    if (l->measured) real(t, MEAN(l, e, decision_us));
}

void league_cell_table(const League *l, const LeagueCell *c, Arena *a, Table *t) {
    table_init(t, a, columns, l->measured ? COLUMNS : COLUMNS - 1);
    for (uint32_t i = 0; i < c->n_entries; i++)
        if (c->entries[i].missing == NULL) row(t, l, &c->entries[i], league_find(c, l->champion));
}

static char *place(const LeagueCell *c, Arena *a) {
    char *load =
        c->load > 0 ? arena_printf(a, "load %.4g", c->load) : arena_str(a, "times as they are");
    return arena_printf(a, "%s on %u servers with %llu GPUs, %s", c->trace, c->n_servers,
                        (unsigned long long)c->gpus, load);
}

static const Column change_columns[] = {
    {.key = "policy", .head = "against"},
    {.key = "knows", .head = "knows"},
    {.key = "jct_change", .head = "JCT", .unit = "%", .scale = 0.01, .decimals = 1},
    {.key = "jct_least", .head = "from", .scale = 0.01, .decimals = 1},
    {.key = "jct_most", .head = "to", .scale = 0.01, .decimals = 1},
    {.key = "jct_cells", .head = "ahead, even, behind"},
    {.key = "makespan_change", .head = "makespan", .unit = "%", .scale = 0.01, .decimals = 1},
    {.key = "makespan_least", .head = "from", .scale = 0.01, .decimals = 1},
    {.key = "makespan_most", .head = "to", .scale = 0.01, .decimals = 1},
    {.key = "makespan_cells", .head = "ahead, even, behind"},
    {.key = "at", .head = "JCT falls most in"},
};

static void change_cells(Table *t, const LeagueChange *c) {
    real(t, c->mean);
    real(t, c->least);
    real(t, c->most);
    table_textf(t, "%u, %u, %u", c->ahead, c->even, c->behind);
}

bool league_change_table(const League *l, Arena *a, Table *t) {
    if (l->n_cells < 2) return false;
    table_init(t, a, change_columns, sizeof change_columns / sizeof *change_columns);
    for (uint32_t i = 0; i < l->cells[0].n_entries; i++) {
        const LeagueEntry *e = &l->cells[0].entries[i];
        LeagueChange       jct, span;
        if (!league_change(l, e->policy, AT(jct_mean_s), &jct) ||
            !league_change(l, e->policy, AT(makespan_s), &span))
            continue;
        table_row(t);
        table_text(t, e->policy);
        table_text(t, e->knows);
        change_cells(t, &jct);
        change_cells(t, &span);
        table_text(t, place(jct.at, a));
    }
    return t->n_rows > 0;
}

char *league_title(const LeagueCell *c, Arena *a) {
    if (c->long_ones + c->too_large == 0) return place(c, a);
    return arena_printf(a, "%s; left out: %u jobs too long, %u too large", place(c, a),
                        c->long_ones, c->too_large);
}

char *league_legend(const League *l, Arena *a) {
    return arena_printf(
        a,
        "Means over %u seeds from %llu on, with 95 %% intervals. JCT: from submission to the end "
        "of a job. makespan: from the first submission to the last end. ratio: to %s, seed by "
        "seed; above 1 is slower. knows: of durations all (oracle), an estimate (predicted) or "
        "nothing (blind). fairness: Jain's index of the tenants' mean slowdowns. %s",
        l->seeds, (unsigned long long)l->first_seed, l->champion,
        l->measured ? "decision: what one took here; no seed repeats it, --no-clock leaves it out."
                    : "Decisions were not timed, so that the same seeds give the same bytes.");
}

static char *against(const League *l, const LeagueEntry *ours, const LeagueEntry *theirs,
                     size_t member, Arena *a) {
    Mean r = league_ratio(l, ours, theirs, member);
    if (!isfinite(r.half))
        return arena_printf(a, "%+.1f %% against %s", 100 * (r.mean - 1), theirs->policy);
    return arena_printf(a, "%+.1f +- %.1f %% against %s", 100 * (r.mean - 1), 100 * r.half,
                        theirs->policy);
}

char *league_verdict(const League *l, const LeagueCell *c, Arena *a) {
    const LeagueEntry *ours = league_find(c, l->champion);
    const LeagueEntry *jct = league_rival(l, c, AT(jct_mean_s)),
                      *span = league_rival(l, c, AT(makespan_s));
    if (jct == NULL || span == NULL) return arena_str(a, "");
    return arena_printf(a, "%s against the best that knows no more: JCT %s; makespan %s.",
                        l->champion, against(l, ours, jct, AT(jct_mean_s), a),
                        against(l, ours, span, AT(makespan_s), a));
}

static bool same_reason(const LeagueEntry *a, const LeagueEntry *b) {
    return b->missing != NULL && strcmp(a->missing, b->missing) == 0;
}

// Those with one reason stand together.
char *league_missing(const LeagueCell *c, Arena *a) {
    char *text = arena_str(a, "");
    for (uint32_t i = 0; i < c->n_entries; i++) {
        const LeagueEntry *e = &c->entries[i];
        uint32_t           first = 0;
        if (e->missing == NULL) continue;
        while (!same_reason(e, &c->entries[first])) first++;
        if (first < i) continue;
        text = arena_printf(a, "%s%s", text, text[0] != '\0' ? "; " : "without ");
        for (uint32_t k = i; k < c->n_entries; k++)
            if (same_reason(e, &c->entries[k]))
                text = arena_printf(a, "%s%s%s", text, k > i ? ", " : "", c->entries[k].policy);
        text = arena_printf(a, "%s: %s", text, e->missing);
    }
    return text;
}

static Err print_cell(const League *l, const LeagueCell *c, Arena *a, FILE *f) {
    const char *verdict = league_verdict(l, c, a), *missing = league_missing(c, a);
    Table       t;
    (void)fprintf(f, "%s\n", league_title(c, a));
    league_cell_table(l, c, a, &t);
    TRY(table_print(&t, f));
    if (missing[0] != '\0') (void)fprintf(f, "%s\n", missing);
    if (verdict[0] != '\0') (void)fprintf(f, "%s\n", verdict);
    return ERR_OK;
}

Err league_print(const League *l, Arena *scratch, FILE *f) {
    size_t mark = scratch->used;
    Err    e = ERR_OK;
    for (uint32_t i = 0; e == ERR_OK && i < l->n_cells; i++) {
        if (i > 0) (void)fputc('\n', f);
        e = print_cell(l, &l->cells[i], scratch, f);
    }
    Table t;
    if (e == ERR_OK && league_change_table(l, scratch, &t)) {
        (void)fprintf(f, "\n%s over all cells, less is better\n", l->champion);
        e = table_print(&t, f);
    }
    if (l->about != NULL) (void)fprintf(f, "\n%s", l->about);
    (void)fprintf(f, "\n%s\n", league_legend(l, scratch));
    arena_rewind(scratch, mark);
    return e;
}
