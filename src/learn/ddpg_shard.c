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
    size_t seqs = (o->batch + o->shards - 1) / o->shards, rows = seqs * o->items;
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

static const DdpgTransition *step_of(const Ddpg *d, uint32_t shard, uint32_t i) {
    return &d->steps[shard + i * d->o.shards];
}

static void pack_teacher(const Ddpg *d, DdpgShard *p, uint32_t i, const DdpgTransition *s) {
    size_t actions = d->o.actor.actions;
    if (s->teacher != NULL) {
        ragged_put(&p->now.ragged, i, s->teacher, actions, p->taught, actions);
        return;
    }
    for (uint32_t t = 0; t < s->n; t++)
        for (size_t k = 0; k < actions; k++)
            p->taught[ragged_row(&p->now.ragged, i, t) * actions + k] = NAN;
}

void ddpg_shard_pack(Ddpg *d, uint32_t shard) {
    DdpgShard *p = &d->shards[shard];
    size_t     features = d->o.actor.trunk.in, actions = d->o.actor.actions;
    p->n = shard < d->n ? (d->n - shard + d->o.shards - 1) / d->o.shards : 0;
    for (uint32_t i = 0; i < p->n; i++) p->len[i] = step_of(d, shard, i)->n;
    ragged_make(&p->now.ragged, p->len, p->n);
    if (d->by_value) {
        for (uint32_t i = 0; i < p->n; i++) p->len[i] = step_of(d, shard, i)->next_n;
        ragged_make(&p->next.ragged, p->len, p->n);
    }
    for (uint32_t i = 0; i < p->n; i++) {
        const DdpgTransition *s = step_of(d, shard, i);
        CHECK(s->n <= d->o.items);
        p->step[p->now.ragged.rank[i]] = shard + i * d->o.shards;
        ragged_put(&p->now.ragged, i, s->x, features, p->now.x, features);
        if (d->by_teacher) pack_teacher(d, p, i, s);
        if (!d->by_value) continue;
        CHECK(s->next_n <= d->o.items);
        ragged_put(&p->now.ragged, i, s->action, actions, p->now.action, actions);
        ragged_put(&p->next.ragged, i, s->next_x, features, p->next.x, features);
    }
}

static float bounded(float x, float most) { return x > most ? most : x < -most ? -most : x; }

// A random stream per transition, so that the result does not depend on shards and threads.
static void add_target_noise(Ddpg *d, DdpgShard *p, uint32_t shard) {
    const Ragged *r = &p->next.ragged;
    uint32_t      actions = d->o.actor.actions;
    uint64_t      update = (uint64_t)*d->nets[DDPG_CRITIC].count;
    for (uint32_t i = 0; i < p->n; i++) {
        Rng rng = rng_fork(d->rng, update * d->o.batch + shard + i * d->o.shards);
        for (uint32_t t = 0; t < r->len[r->rank[i]]; t++)
            for (uint32_t k = 0; k < actions; k++) {
                float *a = &p->next.action[ragged_row(r, i, t) * actions + k];
                float  noise = noise_normal(&rng) * d->o.target_noise;
                *a = bounded(*a + bounded(noise, d->o.target_noise_clip), 1);
            }
    }
}

// reward + discount * the minimum of the critics' values of the next state.
static void set_targets(Ddpg *d, DdpgShard *p, uint32_t shard) {
    const Ragged *now = &p->now.ragged, *next = &p->next.ragged;
    actor_forward(d->o.actor, d->nets[DDPG_ACTOR].target.at, next, p->next.x, p->next.action,
                  p->actor_cache);
    if (d->o.target_noise > 0) add_target_noise(d, p, shard);
    for (uint32_t k = DDPG_CRITIC; k < d->n_nets; k++) {
        critic_forward(d->o.critic, d->nets[k].target.at, next, p->next.x, p->next.action, p->q,
                       p->critic_cache);
        for (uint32_t i = 0; i < p->n; i++) {
            const DdpgTransition *s = step_of(d, shard, i);
            float                 value =
                s->discount != 0 ? s->reward + s->discount * p->q[next->rank[i]] : s->reward;
            float *to = &p->target[now->rank[i]];
            if (k == DDPG_CRITIC || value < *to) *to = value;
        }
    }
}

static double critic_loss(const Ddpg *d, DdpgShard *p) {
    double sum = 0;
    float  share = 1.0f / (float)d->n;
    for (uint32_t i = 0; i < p->n; i++) {
        float weight = d->steps[p->step[i]].weight, off = p->q[i] - p->target[i];
        float size = fabsf(off), bend = d->o.huber;
        bool  linear = bend > 0 && size > bend;
        sum += (double)(weight * (linear ? bend * (size - 0.5f * bend) : 0.5f * off * off));
        p->dq[i] = share * weight * (linear ? (off > 0 ? bend : -bend) : off);
    }
    return sum;
}

void ddpg_shard_critic(Ddpg *d, uint32_t shard) {
    DdpgShard *p = &d->shards[shard];
    set_targets(d, p, shard);
    p->critic_loss = p->value = p->value_size = 0;
    for (uint32_t k = DDPG_CRITIC; k < d->n_nets; k++) {
        bool first = k == DDPG_CRITIC;
        critic_forward(d->o.critic, d->nets[k].w.at, &p->now.ragged, p->now.x, p->now.action, p->q,
                       p->critic_cache);
        p->critic_loss += critic_loss(d, p);
        for (uint32_t i = 0; first && i < p->n; i++) {
            p->value += (double)p->q[i];
            p->value_size += fabs((double)p->q[i]);
        }
        float_vec_zero(p->gradient[k]);
        critic_backward(d->o.critic, d->nets[k].w.at, p->gradient[k].at, &p->now.ragged, p->dq,
                        NULL, p->critic_cache);
    }
}

// d_action of -value by the first critic; p->q gets the values.
static void value_gradient(Ddpg *d, DdpgShard *p) {
    float        size = *d->value_size > 1e-3f ? *d->value_size : 1e-3f;
    float        scale = (d->o.scale_values ? 1.0f / size : 1.0f) / (float)d->n;
    const float *w = d->nets[DDPG_CRITIC].w.at;
    critic_forward(d->o.critic, w, &p->now.ragged, p->now.x, p->now.action, p->q, p->critic_cache);
    for (uint32_t i = 0; i < p->n; i++) {
        p->actor_loss -= (double)p->q[i];
        p->dq[i] = -scale;
    }
    critic_backward(d->o.critic, w, NULL, &p->now.ragged, p->dq, p->d_action, p->critic_cache);
}

// Adds to d_action the gradient of the mean squared distance to the teacher's actions.
static void add_teacher_gradient(Ddpg *d, DdpgShard *p, float strength) {
    const Ragged *r = &p->now.ragged;
    size_t        actions = d->o.actor.actions;
    bool          only_better = d->by_value && d->o.imitate_better;
    for (uint32_t i = 0; i < p->n; i++) {
        if (only_better && p->q_taught[i] <= p->q[i]) continue;
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

// Where the teacher has no action, the actor's own takes its place, so that the critic can value
// it.
static void value_teacher(Ddpg *d, DdpgShard *p) {
    size_t n = (size_t)p->now.ragged.n_rows * d->o.actor.actions;
    for (size_t i = 0; i < n; i++)
        p->d_action[i] = isnan(p->taught[i]) ? p->now.action[i] : p->taught[i];
    critic_forward(d->o.critic, d->nets[DDPG_CRITIC].w.at, &p->now.ragged, p->now.x, p->d_action,
                   p->q_taught, p->critic_cache);
}

void ddpg_shard_actor(Ddpg *d, uint32_t shard) {
    DdpgShard   *p = &d->shards[shard];
    const float *w = d->nets[DDPG_ACTOR].w.at;
    p->actor_loss = p->imitate_loss = 0;
    actor_forward(d->o.actor, w, &p->now.ragged, p->now.x, p->now.action, p->actor_cache);
    if (d->by_value && d->by_teacher && d->o.imitate_better) value_teacher(d, p);
    if (d->by_value)
        value_gradient(d, p);
    else
        for (size_t i = 0; i < (size_t)p->now.ragged.n_rows * d->o.actor.actions; i++)
            p->d_action[i] = 0;
    if (d->by_teacher) add_teacher_gradient(d, p, d->by_value ? d->o.imitate : 1);
    float_vec_zero(p->gradient[DDPG_ACTOR]);
    actor_backward(d->o.actor, w, p->gradient[DDPG_ACTOR].at, &p->now.ragged, p->now.x,
                   p->now.action, p->d_action, d->o.pre_tanh_l2 / (float)d->n, p->actor_cache);
}
