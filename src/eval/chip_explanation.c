#include "eval/chip_explanation.h"

#include <string.h>

typedef struct Seeker {
    DecisionQuery    wish;
    ChipExplanation *to;
    uint64_t         n;  // decisions so far
    bool             found;
    // of the decision under way
    const Relmas   *relmas;
    const ChipView *view;
} Seeker;

static ExplainedTask *task_of(Seeker *s, uint32_t task) {
    ChipExplanation *x = s->to;
    for (uint32_t i = x->n_tasks; i-- > 0;)
        if (x->tasks[i].task == task) return &x->tasks[i];
    if (x->n_tasks == EXPLAIN_TASKS) return NULL;
    const ChipTask     *t = &s->view->tasks[task];
    const RelmasScorer *rule = &s->relmas->dispatch.scorer;
    RelmasTaskState     c = relmas_task_state(rule, s->view, t);
    ExplainedTask      *to = &x->tasks[x->n_tasks++];
    *to = (ExplainedTask){.request = t->request,
                          .task = task,
                          .layer = t->layer,
                          .unit = CHIP_NONE,
                          .left_ms = (double)(t->request.deadline - s->view->now) / 1e6,
                          .rest_ms = (double)c.rest_ns / 1e6,
                          .slack_ms = (double)c.slack_ns / 1e6,
                          .says = relmas_dispatch_output(&s->relmas->dispatch, t),
                          .seen = s->relmas->dispatch.notes[t->slot].said == t->request.id + 1,
                          .hopeless = c.infeasible};
    to->worth = relmas_score_task(rule, s->view, t, &c, &to->says, to->parts);
    return to;
}

static void note_pair(void *self, uint32_t task, uint32_t unit, float wait_ns, float fit,
                      const float parts[RELMAS_TERMS]) {
    Seeker              *s = self;
    ChipExplanation     *x = s->to;
    const ExplainedTask *t = task_of(s, task);
    if (t == NULL || x->n_pairs == EXPLAIN_PAIRS) return;
    ExplainedPair *p = &x->pairs[x->n_pairs++];
    *p = (ExplainedPair){(uint32_t)(t - x->tasks), unit, wait_ns, fit, {0}};
    memcpy(p->parts, parts, sizeof p->parts);
}

static void note_verdict(void *self, uint32_t task, uint32_t unit, RelmasDecision v) {
    Seeker        *s = self;
    ExplainedTask *t = task_of(s, task);
    if (t == NULL) {
        s->to->more++;
        return;
    }
    t->unit = unit;
    t->verdict = v;
}

static void note_units(ChipExplanation *x, const ChipView *v) {
    x->n_units = v->setup->n_units;
    for (uint32_t u = 0; u < x->n_units; u++) {
        const ChipUnit *unit = &v->units[u];
        x->units[u] = (ExplainedUnit){
            .busy = unit->task != CHIP_NONE, .bytes_ns = unit->bytes_ns, .cap = unit->cap};
        if (!x->units[u].busy) continue;
        x->units[u].request = v->tasks[unit->task].request.id;
        x->units[u].free_in = unit->free_at - v->now;
    }
}

static void note_window(ChipExplanation *x, const Relmas *r) {
    x->n_seen = r->observation.n;
    for (uint32_t i = 0; i < r->observation.n; i++) x->seen[i] = r->ids[i];
    memcpy(x->features, r->observation.x, sizeof x->features);
}

static bool chooses(const ChipExplanation *x) {
    uint32_t starts = 0;
    for (uint32_t i = 0; i < x->n_tasks; i++) starts += x->tasks[i].verdict == RELMAS_START;
    return x->n_tasks >= 2 && starts > 0 && starts < x->n_tasks;
}

static void watch(void *self, const ChipView *v, const void *state, bool thinking) {
    Seeker             *s = self;
    ChipAction          actions[2 * CHIP_UNITS];
    RelmasDecisionTrace witness = {note_pair, note_verdict, s};
    if (thinking || s->found) return;
    s->n++;
    if (v->now < s->wish.from || (s->wish.decision > 0 && s->n != s->wish.decision)) return;
    memset(s->to, 0, sizeof *s->to);
    s->relmas = state;
    s->view = v;
    *s->to = (ChipExplanation){.decision = s->n,
                               .now = v->now,
                               .demand = v->demand,
                               .n_free = v->n_free,
                               .waiting = v->n_waiting};
    note_units(s->to, v);
    note_window(s->to, state);
    relmas_explain(state, v, &witness, actions, 2 * CHIP_UNITS);
    s->found = s->wish.decision > 0 || chooses(s->to);
}

Err chip_explanation_find(const ChipRun *run, DecisionQuery wish, Arena *a, ChipExplanation *out) {
    Seeker     s = {.wish = wish, .to = out};
    ChipRun    watched = *run;
    ChipResult r;
    watched.watch = watch;
    watched.watcher = &s;
    TRY(chip_simulate(&watched, a, &r));
    if (s.found) return ERR_OK;
    return err_set(ERR_ARG, "the run has no such decision: there are %llu, until %.3f ms",
                   (unsigned long long)s.n, (double)r.span / 1e6);
}

const ExplainedPair *chip_explanation_pair(const ChipExplanation *x, uint32_t task, uint32_t unit) {
    for (uint32_t i = 0; i < x->n_pairs; i++)
        if (x->pairs[i].task == task && x->pairs[i].unit == unit) return &x->pairs[i];
    return NULL;
}
