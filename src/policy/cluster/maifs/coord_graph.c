// The coordination graph and its messages. Agents that may claim the same job are joined: the
// rivals for a job, likeliest first, each with the next ones in that order, so that every agent has
// neighbours at the jobs it contests and none becomes a hub.
#include <math.h>
#include <string.h>

#include "learn/activation.h"
#include "policy/cluster/maifs/coord_int.h"

static void choose(Coordination *a, uint32_t i, uint32_t entry) {
    uint32_t at = a->n_choices[i]++;
    a->choice[i * CHOICES + at] = entry;
    a->sum[i * CHOICES + at] = a->gain[entry];
}

// The best claims, then the best gang claims among the rest.
static void choices_of(Coordination *a, uint32_t i) {
    uint32_t e = a->first[i], end = a->first[i + 1];
    for (uint32_t c = 0; c < CHOICES; c++) {
        a->choice[i * CHOICES + c] = COORD_NONE;
        a->sum[i * CHOICES + c] = c == 0 ? 0 : -INFINITY;
    }
    a->n_choices[i] = 1;
    for (; e < end && a->n_choices[i] < CHOICES_PLAIN; e++) choose(a, i, e);
    for (; e < end && a->n_choices[i] < CHOICES; e++)
        if (a->give[e] < coord_need(a, e)) choose(a, i, e);
}

// Softmax over gains: the probability that the agent claims each job.
static void chances_of(Coordination *a, uint32_t i) {
    const uint32_t *choice = a->choice + i * CHOICES;
    float          *chance = a->chance + i * CHOICES, all = 0;
    float           best = a->gain[a->first[i]] > 0 ? a->gain[a->first[i]] : 0;
    float           t = a->params.temperature > 1e-3f ? a->params.temperature : 1e-3f;
    for (uint32_t c = 0; c < a->n_choices[i]; c++) {
        chance[c] = repro_exp(((c == 0 ? 0 : a->gain[choice[c]]) - best) / t);
        all += chance[c];
    }
    for (uint32_t c = 0; c < a->n_choices[i]; c++) chance[c] /= all;
}

// Agents by the job they may claim, likeliest first.
static void find_rivals(Coordination *a) {
    uint32_t *first = a->rival_first, jobs = a->p->jobs, n = 0;
    for (uint32_t x = 0; x < a->n * CHOICES; x++) {
        if (x % CHOICES == 0 || x % CHOICES >= a->n_choices[x / CHOICES]) continue;
        if (a->chance[x] > a->params.least) a->keys[n++] = packed_key_descending(a->chance[x], x);
    }
    packed_keys_sort(a->keys, n);
    memset(first, 0, (jobs + 1) * sizeof *first);
    for (uint32_t x = 0; x < n; x++) first[a->job[a->choice[packed_key_tie(a->keys[x])]]]++;
    for (uint32_t k = 0, at = 0; k <= jobs; k++) {
        at += first[k];
        first[k] = at;
    }
    for (uint32_t x = n; x > 0; x--) {
        uint32_t at = packed_key_tie(a->keys[x - 1]);
        a->rival[--first[a->job[a->choice[at]]]] = at / CHOICES;
    }
}

static void join(Coordination *a, uint32_t i, uint32_t j) {
    uint32_t degree = a->params.degree, *near = a->near + (size_t)i * degree;
    if (a->n_near[i] == degree || a->n_near[j] == degree) return;
    for (uint32_t d = 0; d < a->n_near[i]; d++)
        if (near[d] == j) return;
    near[a->n_near[i]++] = j;
    a->near[(size_t)j * degree + a->n_near[j]++] = i;
    a->edges[a->n_edges++] = (CoordEdge){i < j ? i : j, i < j ? j : i};
}

// Every job joins its rivals to the next ones before any is joined to the next but one.
static void join_rivals(Coordination *a) {
    memset(a->n_near, 0, a->n * sizeof *a->n_near);
    for (uint32_t apart = 1; apart <= a->params.degree / 2; apart++)
        for (uint32_t k = 0; k < a->p->jobs; k++)
            for (uint32_t x = a->rival_first[k]; x + apart < a->rival_first[k + 1]; x++)
                join(a, a->rival[x], a->rival[x + apart]);
}

static void find_arcs(Coordination *a) {
    uint32_t *first = a->arc_first;
    memset(first, 0, (a->n + 1) * sizeof *first);
    for (uint32_t e = 0; e < a->n_edges; e++) {
        first[a->edges[e].a]++;
        first[a->edges[e].b]++;
    }
    for (uint32_t i = 0, at = 0; i <= a->n; i++) {
        at += first[i];
        first[i] = at;
    }
    for (uint32_t e = a->n_edges; e > 0;
         e--) {  // backwards: each list begins with its most likely arc
        uint32_t x = a->edges[e - 1].a, y = a->edges[e - 1].b, there = --first[x],
                 back = --first[y];
        a->arcs[there] = (CoordArc){y, back};
        a->arcs[back] = (CoordArc){x, there};
    }
    a->n_arcs = first[a->n];
}

void coord_graph(Coordination *a) {
    for (uint32_t i = 0; i < a->n; i++) {
        choices_of(a, i);
        chances_of(a, i);
    }
    find_rivals(a);
    join_rivals(a);
    find_arcs(a);
}

// Max-plus message passing. An agent adds received messages to its gains and sends each neighbour
// the best total it can reach for each of the neighbour's choices. Agents send one after the other,
// as equal agents that send at once choose alike.

// Two claims on one job: a penalty if one of them suffices, a bonus if both are needed.
static float same_job(const Coordination *a, uint32_t mine, uint32_t its) {
    uint32_t need = coord_need(a, mine);
    return a->give[mine] >= need || a->give[its] >= need ? 0 - a->params.penalty : a->params.bonus;
}

// For each claim of j: i's claim on the same job and the payoff of that pair.
static void matches_of(const Coordination *a, const uint32_t *mine, uint32_t j, CoordMatch *match) {
    const uint32_t *its = a->choice + j * CHOICES;
    memset(match, 0, CHOICES * sizeof *match);
    for (uint32_t d = 1; d < a->n_choices[j]; d++) {
        uint32_t c = a->at_job[a->job[its[d]]];
        if (c > 0) match[d] = (CoordMatch){same_job(a, mine[c], its[d]), c};
    }
}

static void matches_from(Coordination *a, uint32_t i) {
    const uint32_t *mine = a->choice + i * CHOICES;
    for (uint32_t c = 1; c < a->n_choices[i]; c++) a->at_job[a->job[mine[c]]] = (uint8_t)c;
    for (uint32_t arc = a->arc_first[i]; arc < a->arc_first[i + 1]; arc++)
        matches_of(a, mine, a->arcs[arc].to, a->match + (size_t)arc * CHOICES);
    for (uint32_t c = 1; c < a->n_choices[i]; c++) a->at_job[a->job[mine[c]]] = 0;
}

// For each choice d of the neighbour: the most that an agent can reach beside it, if only pairs on
// the same job have a payoff.
static void best_apart(const Coordination *a, uint32_t arc, uint32_t n, const float *own,
                       float *best) {
    const CoordMatch *match = a->match + (size_t)arc * CHOICES;
    uint32_t          top = 0;
    float             first = own[0], second = -INFINITY;
    for (uint32_t c = 1; c < n; c++) {
        second = own[c] > first ? first : own[c] > second ? own[c] : second;
        top = own[c] > first ? c : top;
        first = own[c] > first ? own[c] : first;
    }
    best[0] = first;
    for (uint32_t d = 1; d < CHOICES; d++) {
        float others = match[d].of == top && top > 0 ? second : first;
        float same = match[d].of > 0 ? own[match[d].of] + match[d].worth : -INFINITY;
        best[d] = same > others ? same : others;
    }
}

// Message to neighbour j along an arc: the best of i's sums without j's own message.
static void send_message(Coordination *a, uint32_t i, uint32_t arc) {
    uint32_t     j = a->arcs[arc].to, n = a->n_choices[j];
    const float *received = a->message + (size_t)a->arcs[arc].back * CHOICES;
    float       *sent = a->message + (size_t)arc * CHOICES, *its = a->sum + (size_t)j * CHOICES;
    float        own[CHOICES], now[CHOICES], mean = 0, stays = a->params.damping;
    for (uint32_t c = 0; c < CHOICES; c++) own[c] = a->sum[(size_t)i * CHOICES + c] - received[c];
    best_apart(a, arc, a->n_choices[i], own, now);
    for (uint32_t d = 0; d < n; d++) mean += now[d];
    mean /= (float)n;
    for (uint32_t d = 0; d < n; d++) {
        float next = stays * sent[d] + (1 - stays) * (now[d] - mean);
        its[d] += next - sent[d];
        sent[d] = next;
    }
}

void coord_pass_messages(Coordination *a) {
    memset(a->message, 0, (size_t)a->n_arcs * CHOICES * sizeof *a->message);
    memset(a->at_job, 0, a->p->jobs);
    for (uint32_t i = 0; i < a->n; i++) matches_from(a, i);
    for (uint32_t t = 0; t < a->params.iterations; t++)
        for (uint32_t i = 0; i < a->n; i++)
            for (uint32_t arc = a->arc_first[i]; arc < a->arc_first[i + 1]; arc++)
                send_message(a, i, arc);
    for (uint32_t i = 0; i < a->n; i++) {
        const float *sum = a->sum + (size_t)i * CHOICES;
        a->idle_score[i] = sum[0];
        for (uint32_t c = 1; c < a->n_choices[i]; c++)
            a->score[a->choice[i * CHOICES + c]] = sum[c];
    }
}
