// Walks a machine that fsm_agent exported, with the real XState. Reads commands on stdin, writes JSON on stdout.
import { readFileSync } from "node:fs";
import { getInitialSnapshot, getNextSnapshot } from "xstate";
import { machine } from "./runtime.mjs";

const { document, words, explore } = JSON.parse(readFileSync(0, "utf8"));
const loop = machine(document);
const key = (snapshot) => JSON.stringify([snapshot.value, snapshot.context]);
const follow = (word) => {
  let snapshot = getInitialSnapshot(loop);
  for (const type of word) snapshot = getNextSnapshot(loop, snapshot, { type });
  return [snapshot.value, snapshot.context];
};

const reached = () => {
  const start = getInitialSnapshot(loop);
  const seen = new Map([[key(start), 0]]);
  const shortest = {};
  let level = [start];
  for (let moves = 0; level.length; moves += 1) {
    const further = [];
    for (const here of level) {
      if (here.status === "done") {
        shortest[here.context.reason] ??= moves;
        continue;
      }
      for (const type of Object.keys(document.states[here.value].on)) {
        const there = getNextSnapshot(loop, here, { type });
        if (key(there) === key(here) || seen.has(key(there))) continue;
        seen.set(key(there), moves);
        (type === "go" ? further : level).push(there);
      }
    }
    level = further;
  }
  return { configurations: seen.size, shortest };
};

console.log(JSON.stringify({ ends: words.map(follow), reached: explore ? reached() : null }));
