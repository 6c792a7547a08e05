#include <math.h>

#include "base/err.h"
#include "learn/ddpg_int.h"
#include "learn/noise.h"

static void side_init(DdpgSide *s, const DdpgOptions *o, size_t seqs, size_t rows, Arena *a) {
    s->ragged = (Ragged){.start = arena_new(a, uint32_t, o->items + 1),
                         .rank = arena_new(a, uint32_t, seqs),
                         .len = arena_new(a, uint32_t, seqs)};
    s->x = float_vec_new(a, rows * o->actor.trunk.in).at;
    s->action = float_vec_new(a, rows * o->actor.actions).at;
}

void ddpg_shard_init(DdpgShard *p, const DdpgOptions *o, const Ddpg *d, Arena *a) {
    size_t seqs = (o->batch + o->parts - 1) / o->parts, rows = seqs * o->items;
    p->len = arena_new(a, uint32_t, seqs);
    p->step = arena_new(a, uint32_t, seqs);
    side_init(&p->now, o, seqs, rows, a);
    side_init(&p->next, o, seqs, rows, a);
    p->taught = float_vec_new(a, rows * o->actor.actions).at;
    p->d_action = float_vec_new(a, rows * o->actor.actions).at;
    p->target = float_vec_new(a, seqs).at;
    p->q = float_vec_new(a, seqs).at;
    p->q_taught = float_vec_new(a, seqs).at;
    p->dq = float_vec_new(a, seqs).at;
    p->actor_cache = float_vec_new(a, actor_cache_size(o->actor, rows, seqs)).at;
    p->critic_cache = float_vec_new(a, critic_cache_size(o->critic, rows, seqs)).at;
    for (uint32_t i = 0; i < d->n_nets; i++) p->gradient[i] = float_vec_new(a, d->nets[i].w.n);
}

static const DdpgTransition *step_of(const Ddpg *d, uint32_t part, uint32_t i) {
    return &d->steps[part + i * d->o.parts];
}

static void pack_taught(const Ddpg *d, DdpgShard *p, uint32_t i, const DdpgTransition *s) {
    size_t actions = d->o.actor.actions;
    if (s->teacher != NULL) {
        ragged_put(&p->now.ragged, i, s->teacher, actions, p->taught, actions);
        return;
    }
    for (uint32_t t = 0; t < s->n; t++)
        for (size_t k = 0; k < actions; k++)
            p->taught[ragged_row(&p->now.ragged, i, t) * actions + k] = NAN;
}

void ddpg_shard_pack(Ddpg *d, uint32_t part) {
    DdpgShard *p = &d->parts[part];
    size_t     features = d->o.actor.trunk.in, actions = d->o.actor.actions;
    p->n = part < d->n ? (d->n - part + d->o.parts - 1) / d->o.parts : 0;
    for (uint32_t i = 0; i < p->n; i++) p->len[i] = step_of(d, part, i)->n;
    ragged_make(&p->now.ragged, p->len, p->n);
    if (d->by_value) {
        for (uint32_t i = 0; i < p->n; i++) p->len[i] = step_of(d, part, i)->next_n;
        ragged_make(&p->next.ragged, p->len, p->n);
    }
    for (uint32_t i = 0; i < p->n; i++) {
        const DdpgTransition *s = step_of(d, part, i);
        CHECK(s->n <= d->o.items);
        p->step[p->now.ragged.rank[i]] = part + i * d->o.parts;
        ragged_put(&p->now.ragged, i, s->x, features, p->now.x, features);
        if (d->by_teacher) pack_taught(d, p, i, s);
        if (!d->by_value) continue;
        CHECK(s->next_n <= d->o.items);
        ragged_put(&p->now.ragged, i, s->action, actions, p->now.action, actions);
        ragged_put(&p->next.ragged, i, s->next_x, features, p->next.x, features);
    }
}

static float bounded(float x, float most) { return x > most ? most : x < -most ? -most : x; }

// Each step has its own stream, so that neither parts nor threads show.
static void smooth(Ddpg *d, DdpgShard *p, uint32_t part) {
    const Ragged *r = &p->next.ragged;
    uint32_t      actions = d->o.actor.actions;
    uint64_t      update = (uint64_t)*d->nets[DDPG_CRITIC].count;
    for (uint32_t i = 0; i < p->n; i++) {
        Rng rng = rng_fork(d->rng, update * d->o.batch + part + i * d->o.parts);
        for (uint32_t t = 0; t < r->len[r->rank[i]]; t++)
            for (uint32_t k = 0; k < actions; k++) {
                float *a = &p->next.action[ragged_row(r, i, t) * actions + k];
                float  noise = noise_normal(&rng) * d->o.smooth;
                *a = bounded(*a + bounded(noise, d->o.smooth_most), 1);
            }
    }
}

// reward + discount * the lower of the critics' values of what comes after.
static void set_targets(Ddpg *d, DdpgShard *p, uint32_t part) {
    const Ragged *now = &p->now.ragged, *next = &p->next.ragged;
    actor_forward(d->o.actor, d->nets[DDPG_ACTOR].target.at, next, p->next.x, p->next.action,
                  p->actor_cache);
    if (d->o.smooth > 0) smooth(d, p, part);
    for (uint32_t k = DDPG_CRITIC; k < d->n_nets; k++) {
        critic_forward(d->o.critic, d->nets[k].target.at, next, p->next.x, p->next.action, p->q,
                       p->critic_cache);
        for (uint32_t i = 0; i < p->n; i++) {
            const DdpgTransition *s = step_of(d, part, i);
            float                 value =
                s->discount != 0 ? s->reward + s->discount * p->q[next->rank[i]] : s->reward;
            float *to = &p->target[now->rank[i]];
            if (k == DDPG_CRITIC || value < *to) *to = value;
        }
    }
}

static double critic_loss(Ddpg *d, DdpgShard *p, bool first) {
    double sum = 0;
    float  share = 1.0f / (float)d->n;
    for (uint32_t i = 0; i < p->n; i++) {
        float weight = d->steps[p->step[i]].weight, off = p->q[i] - p->target[i];
        float size = fabsf(off), bend = d->o.huber;
        bool  linear = bend > 0 && size > bend;
        sum += (double)(weight * (linear ? bend * (size - 0.5f * bend) : 0.5f * off * off));
        p->dq[i] = share * weight * (linear ? (off > 0 ? bend : -bend) : off);
        if (first) d->errors[p->step[i]] = size;
    }
    return sum;
}

void ddpg_shard_critic(Ddpg *d, uint32_t part) {
    DdpgShard *p = &d->parts[part];
    set_targets(d, p, part);
    p->critic_loss = p->value = p->value_size = 0;
    for (uint32_t k = DDPG_CRITIC; k < d->n_nets; k++) {
        bool first = k == DDPG_CRITIC;
        critic_forward(d->o.critic, d->nets[k].w.at, &p->now.ragged, p->now.x, p->now.action, p->q,
                       p->critic_cache);
        p->critic_loss += critic_loss(d, p, first);
        for (uint32_t i = 0; first && i < p->n; i++) {
            p->value += (double)p->q[i];
            p->value_size += fabs((double)p->q[i]);
        }
        float_vec_zero(p->gradient[k]);
        critic_backward(d->o.critic, d->nets[k].w.at, p->gradient[k].at, &p->now.ragged, p->dq,
                        NULL, p->critic_cache);
    }
}

// d_action of -value, by the first critic. p->q has the values.
static void by_value(Ddpg *d, DdpgShard *p) {
    float        size = *d->value_size > 1e-3f ? *d->value_size : 1e-3f;
    float        scale = (d->o.level ? 1.0f / size : 1.0f) / (float)d->n;
    const float *w = d->nets[DDPG_CRITIC].w.at;
    critic_forward(d->o.critic, w, &p->now.ragged, p->now.x, p->now.action, p->q, p->critic_cache);
    for (uint32_t i = 0; i < p->n; i++) {
        p->actor_loss -= (double)p->q[i];
        p->dq[i] = -scale;
    }
    critic_backward(d->o.critic, w, NULL, &p->now.ragged, p->dq, p->d_action, p->critic_cache);
}

// Adds to d_action the gradient of the mean squared distance to what was taught.
static void by_teacher(Ddpg *d, DdpgShard *p, float strength) {
    const Ragged *r = &p->now.ragged;
    size_t        actions = d->o.actor.actions;
    bool          choosy = d->by_value && d->o.imitate_better;
    for (uint32_t i = 0; i < p->n; i++) {
        if (choosy && p->q_taught[i] <= p->q[i]) continue;
        double sum = 0;
        float  share = 1.0f / ((float)(r->len[i] > 0 ? r->len[i] : 1) * (float)actions);
        for (uint32_t t = 0; t < r->len[i]; t++)
            for (size_t k = (r->start[t] + i) * actions, end = k + actions; k < end; k++) {
                if (isnan(p->taught[k])) continue;
                float off = p->now.action[k] - p->taught[k];
                sum += (double)(off * off);
                p->d_action[k] += strength * 2 * off * share / (float)d->n;
            }
        p->imitate_loss += sum * (double)share;
    }
}

// What nobody taught is the actor's own action, so that a critic can judge the whole.
static void judge_taught(Ddpg *d, DdpgShard *p) {
    size_t n = (size_t)p->now.ragged.n_rows * d->o.actor.actions;
    for (size_t i = 0; i < n; i++)
        p->d_action[i] = isnan(p->taught[i]) ? p->now.action[i] : p->taught[i];
    critic_forward(d->o.critic, d->nets[DDPG_CRITIC].w.at, &p->now.ragged, p->now.x, p->d_action,
                   p->q_taught, p->critic_cache);
}

void ddpg_shard_actor(Ddpg *d, uint32_t part) {
    DdpgShard   *p = &d->parts[part];
    const float *w = d->nets[DDPG_ACTOR].w.at;
    p->actor_loss = p->imitate_loss = 0;
    actor_forward(d->o.actor, w, &p->now.ragged, p->now.x, p->now.action, p->actor_cache);
    if (d->by_value && d->by_teacher && d->o.imitate_better) judge_taught(d, p);
    if (d->by_value)
        by_value(d, p);
    else
        for (size_t i = 0; i < (size_t)p->now.ragged.n_rows * d->o.actor.actions; i++)
            p->d_action[i] = 0;
    if (d->by_teacher) by_teacher(d, p, d->by_value ? d->o.imitate : 1);
    float_vec_zero(p->gradient[DDPG_ACTOR]);
    actor_backward(d->o.actor, w, p->gradient[DDPG_ACTOR].at, &p->now.ragged, p->now.x,
                   p->now.action, p->d_action, d->o.pull / (float)d->n, p->actor_cache);
}
