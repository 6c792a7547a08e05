// ChipMessage: a line that a client of `cotenant chip env` sends: a reset, actions or the cost of a
// plan. docs/chip-env.md describes the protocol.
#pragma once

#include "contract/chip.h"

#define CHIP_ENV_VERSION 1
enum { CHIP_MESSAGE_ACTIONS_MAX = 511 };

typedef enum ChipMessageKind {
    CHIP_MESSAGE_RESET,
    CHIP_MESSAGE_ACTIONS,
    CHIP_MESSAGE_PLAN,
} ChipMessageKind;

typedef struct ChipReset {  // of an episode; members that a message lacks keep their values
    double  load;
    int64_t seed, requests;
    bool    plans;  // plan() is called as well
} ChipReset;

typedef struct ChipMessage {
    ChipMessageKind kind;
    ChipReset       reset;
    ChipAction      actions[CHIP_MESSAGE_ACTIONS_MAX];
    uint32_t        n_actions;
    ChipPlanCost    cost;
} ChipMessage;

// Errors say what to write instead; *out is then in part changed.
MUST_USE Err chip_message_parse(const char *text, size_t len, ChipMessage *out);
// Whether the engine can carry out all of the actions, in this order.
MUST_USE Err chip_message_check(const ChipMessage *m, const ChipView *view);
