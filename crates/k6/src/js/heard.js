// Who hears what comes over WebSockets and streams, by their numbers.
const host = globalThis.__k6;

const hearing = new Map();

host.socketHears = (id, news) => hearing.get(id)?.hear(...news);
host.onBegin(() => {
  if (hearing.size > 0) hearing.clear();
  host.socketsAre(false);
});

export const hears = (id, who) => {
  hearing.set(id, who);
  host.socketsAre(true);
};

export const hearsNoMore = (id) => {
  hearing.delete(id);
  host.socketsAre(hearing.size > 0);
};
