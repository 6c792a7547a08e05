// Which connection or response is closed when connections or memory run out.
#include "base/err.h"
#include "net/listener_int.h"

// EVICT_SHARE: an address with more than this part of all connections loses its own first.
// EVICT_TURN: responses closed at once.
enum { EVICT_SHARE = 8, EVICT_TURN = 16 };

static const TimeNs EVICT_SECOND = 1000000000, EVICT_FUTILE = 20000000, EVICT_STALL = 20000000;

typedef struct EvictRow {
    StreamUse use;
    TimeNs    age;  // since it came into use, or last moved as much as it should in a second
} EvictRow;

// In this order. A connection that is being used properly is in none of these states for long.
static const EvictRow evict_rows[] = {
    {STREAM_NEW, 1}, {STREAM_PART, 5}, {STREAM_IDLE, 1}, {STREAM_PART, 1}, {STREAM_STALL, 1}};

static Stream *oldest(const StreamList *uses, StreamUse use, TimeNs until) {
    Stream *s = uses[use].first;
    return s && s->since <= until ? s : NULL;
}

// Connections come and go faster than they age: those without a complete request go first, in order
// of arrival. One that came in this round stays.
static Stream *oldest_young(const StreamList *uses, TimeNs now) {
    Stream *new = oldest(uses, STREAM_NEW, now - 1), *part = oldest(uses, STREAM_PART, now - 1);
    if (new &&part) return new->since <= part->since ? new : part;
    if (uses[STREAM_NEW].first || uses[STREAM_PART].first) return new ? new : part;
    Stream *stalled = oldest(uses, STREAM_STALL, now - EVICT_STALL);
    return stalled ? stalled : oldest(uses, STREAM_IDLE, now - 1);
}

static Stream *pick(const StreamList *uses, TimeNs now) {
    for (size_t i = 0; i < sizeof evict_rows / sizeof *evict_rows; i++) {
        const EvictRow *row = &evict_rows[i];
        Stream         *s = oldest(uses, row->use, now - row->age * EVICT_SECOND);
        if (s) return s;
    }
    return oldest_young(uses, now);
}

Stream *listener_victim(const Listener *l, const Peer *newcomer) {
    TimeNs      now = loop_now(l->loop);
    const Peer *hog = l->heaviest;
    Stream     *s = NULL;
    if (hog && hog->open > l->room / EVICT_SHARE) s = pick(hog->uses, now);
    // An address that holds half of all connections takes none from others.
    if (s || (newcomer && newcomer->open > l->room / 2 && newcomer->open < l->counts.open))
        return s;
    return pick(l->uses, now);
}

// The late response of the address with most unread bytes, the oldest of those.
static Stream *worst(const Listener *l, const Budget *b) {
    Stream *found = NULL;
    size_t  most = 0;
    for (Stream *s = l->unread.first; s; s = s->links[STREAM_UNREAD].next) {
        size_t held = s->peer ? s->peer->unread : s->unread;
        if (held > most && s->kind->late(s, b, false) > 0) {
            found = s;
            most = held;
        }
    }
    return found;
}

size_t listener_relieve(Listener *l, const Budget *b, size_t bytes) {
    size_t  freed = 0;
    Stream *s = NULL;
    for (int i = 0; i < EVICT_TURN && freed < bytes && (s = worst(l, b)) != NULL; i++) {
        freed += s->kind->late(s, b, true);
        l->counts.evicted++;
    }
    return freed;
}

bool listener_make_room(Listener *l, size_t bytes) {
    const ListenerOptions *o = &l->options;
    if (loop_now(l->loop) < l->futile + EVICT_FUTILE) return false;
    size_t freed = o->relieve ? o->relieve(o->self, bytes) : listener_relieve(l, NULL, bytes);
    if (freed == 0) l->futile = loop_now(l->loop);
    return freed > 0;
}
