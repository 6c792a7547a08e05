// Trainees: the learned policies that can be trained, each in a file of its own.
#pragma once

#include "policy/chip/relmas/relmas.h"
#include "policy/cluster/maifs/maifs.h"
#include "train/chip_curriculum.h"
#include "train/cluster_curriculum.h"
#include "train/trainee.h"

// relmas_trainee.c: imitates the heuristic with the weights that suit a run best, then learns by
// DDPG. hidden: size of actor and critic.
Trainee *relmas_trainee_open(const ChipCurriculum *c, const RelmasSettings *settings,
                             uint32_t hidden, uint64_t seed, Arena *a);

// maifs_trainee.c: imitates the policy's own rule, then learns the value of joint actions
// (train/maifs_q.h). servers: of the largest cluster in the curriculum.
Trainee *maifs_trainee_open(const ClusterCurriculum *c, const MaifsSettings *settings,
                            uint32_t servers, uint64_t seed, Arena *a);

// stance_trainee.c: expert iteration of the stances of maifs, from rollouts.
MUST_USE Err stance_trainee_open(const ClusterCurriculum *c, const MaifsSettings *settings,
                                 double makespan_weight, uint64_t seed, Arena *a, Trainee **out);

// drl_trainee.c: imitates shortest-remaining-work-first, then learns by policy gradients: of
// several runs on the same trace, the choices of better ones become more likely.
Trainee *drl_trainee_open(const ClusterCurriculum *c, const void *settings, uint32_t hidden,
                          uint64_t seed, Arena *a);
