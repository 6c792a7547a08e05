// A skew heap: merging walks the right edges of both heaps and swaps the children of every node on
// the way, which keeps the edges short on average.
#include "policy/cluster/common/priority_queue.h"

static uint32_t merge(QueueNode *n, uint32_t a, uint32_t b) {
    uint32_t head = CLUSTER_NONE, *to = &head;
    while (a != CLUSTER_NONE && b != CLUSTER_NONE) {
        if (priority_queue_before(&n[b], &n[a])) {
            uint32_t t = a;
            a = b;
            b = t;
        }
        *to = a;
        uint32_t next = n[a].right;
        n[a].right = n[a].left;
        to = &n[a].left;
        a = next;
    }
    *to = a != CLUSTER_NONE ? a : b;
    return head;
}

void priority_queue_push(PriorityQueue *l, uint32_t slot, SortKey key, uint64_t entry) {
    l->nodes[slot] = (QueueNode){key, entry, CLUSTER_NONE, CLUSTER_NONE};
    l->head = merge(l->nodes, l->head, slot);
}

uint32_t priority_queue_pop(PriorityQueue *l) {
    uint32_t slot = l->head;
    if (slot == CLUSTER_NONE) return slot;
    l->head = merge(l->nodes, l->nodes[slot].left, l->nodes[slot].right);
    return slot;
}
