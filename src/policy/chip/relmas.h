// Relmas: what its training and its explanations share with the learned policy.
#pragma once

#include "policy/chip/relmas_look.h"
#include "policy/chip/relmas_net.h"
#include "policy/chip/relmas_serve.h"

static const RelmasNet RELMAS_SHAPE = {.in = RELMAS_FEATURES, .hidden = 32, .out = RELMAS_SAYS};

typedef struct RelmasLoaded {
    RelmasNet    net;
    const float *w;  // NULL: no network, the rule alone
    // Training is told of every thought and may change what the network said, [n][RELMAS_SAYS].
    void (*explore)(void *self, const ChipView *v, const RelmasLook *look, float *says);
    void *self;
} RelmasLoaded;

typedef struct Relmas {
    RelmasTable         table;
    RelmasServe         serve;
    const RelmasLoaded *loaded;
    RelmasLook          look;  // of the last thought, and what the network said then
    uint64_t            ids[RELMAS_WINDOW];
    uint32_t            slots[RELMAS_WINDOW];
    float               says[RELMAS_WINDOW * RELMAS_SAYS];
} Relmas;
