// Menu: the ways in which a request can go on, by versions and cores: what each takes, and what it
// costs the machine.
#pragma once

#include "contract/node.h"
#include "policy/carve.h"

enum { MENU_SETS = 3 };  // of versions: the fastest, frugal ones, those that move least

typedef struct MenuCost {
    float ns, bytes;  // of all layers from one on
} MenuCost;

typedef struct Menu {
    const NodeModel   *model;
    const NodeMachine *machine;
    uint32_t           narrow;   // count that ways start with, where there are cores enough
    MenuCost          *rest;     // [level][layer, one more than there are][set][count]
    uint8_t           *picks;    // [level][set][count][layer] versions
    float             *fastest;  // [layer, one more] the least that the rest can take at all
} Menu;

typedef struct MenuWay {
    uint32_t set, k;
    float    ns;
    bool     fits;  // into the time that was asked for
} MenuWay;

void menu_carve(Menu *m, const NodeModel *model, const NodeMachine *machine, Carve *from);
// lean: what bytes are worth against cores in the sets that spare them; narrow: least cores of a
// way.
void menu_init(Menu *m, double lean, uint32_t narrow);

// The cheapest way on at most `cores` cores that takes no more than ns; the fastest when none does.
// price: of the whole bandwidth for a while, against all cores for as long.
MenuWay menu_choose(const Menu *m, uint32_t level, uint32_t l, uint32_t cores, double ns,
                    double price);

// Where a block that goes this way ends when it may take ns; after layer l at least.
uint32_t menu_reach(const Menu *m, uint32_t level, uint32_t l, MenuWay way, double ns);

const uint8_t *menu_versions(const Menu *m, uint32_t level, MenuWay way);

// Part of the memory's bandwidth that layers [l, end) use.
double menu_traffic(const Menu *m, uint32_t level, uint32_t l, uint32_t end, MenuWay way);

static inline const MenuCost *menu_at(const Menu *m, uint32_t level, uint32_t l, uint32_t set) {
    size_t layer = (size_t)level * (m->model->n_layers + 1) + l;
    return m->rest + (layer * MENU_SETS + set) * m->model->n_counts;
}
