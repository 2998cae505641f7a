// k6-utils of jslib.k6.io: random values, texts, stages.
import exec from "k6/execution";

export const uuidv4 = (secure = false) =>
  secure
    ? crypto.randomUUID()
    : "xxxxxxxx-xxxx-4xxx-yxxx-xxxxxxxxxxxx".replace(/[xy]/g, (place) => {
        const digit = Math.floor(Math.random() * 16);
        return (place === "x" ? digit : (digit & 3) | 8).toString(16);
      });

export const randomIntBetween = (min, max) => Math.floor(Math.random() * (max - min + 1) + min);

export const randomItem = (items) => items[Math.floor(Math.random() * items.length)];

export const randomString = (length, charset = "abcdefghijklmnopqrstuvwxyz") => {
  let text = "";
  for (let left = length; left > 0; left -= 1) text += charset[Math.floor(Math.random() * charset.length)];
  return text;
};

export const findBetween = (content, left, right, repeat = false) => {
  const found = [];
  for (let at = 0; ; ) {
    const begin = content.indexOf(left, at);
    if (begin < 0) break;
    const from = begin + left.length;
    const end = content.indexOf(right, from);
    if (end < 0) break;
    found.push(content.slice(from, end));
    at = end + Math.max(right.length, 1);
    if (!repeat || at > content.length) break;
  }
  if (found.length === 0) return null;
  return repeat ? found : found[0];
};

// A sixth of the time up to where a bell curve begins, four sixths along it, a sixth down to nothing.
export const normalDistributionStages = (maxVus, durationSeconds, numberOfStages = 10) => {
  const stage = (seconds, target) => ({ duration: `${Math.ceil(seconds)}s`, target });
  const heights = Array.from({ length: numberOfStages + 1 }, (_, at) => Math.exp(-((-2 + (4 * at) / numberOfStages) ** 2) / 2));
  const peak = Math.max(...heights);
  const [first, ...along] = heights.map((height) => Math.round((height * maxVus) / peak));
  const stages = along.map((target) => stage((4 * durationSeconds) / (6 * numberOfStages), target));
  return [stage(durationSeconds / 6, first), ...stages, stage(durationSeconds / 6, 0)];
};

const UNITS_MS = { d: 86_400_000, h: 3_600_000, m: 60_000, s: 1_000, ms: 1 };

export const parseDuration = (text) => {
  if (typeof text !== "string" || text.length === 0) throw new Error("the duration is empty; a text such as 1m30s is expected");
  const part = /\s*-?(\d+\.?\d*|\.\d+)(ms|[dhms])?/y;
  const seen = new Set();
  let ms = 0;
  while (part.lastIndex < text.length) {
    const found = part.exec(text);
    const unit = found?.[2] ?? "ms";
    if (found === null || seen.has(unit)) throw new Error(`${text} is not a valid duration; a text such as 1m30s is expected`);
    seen.add(unit);
    ms += Number(found[1]) * UNITS_MS[unit];
  }
  return Math.trunc(ms);
};

const stagesNow = () => {
  const scenario = exec.test.options.scenarios?.[exec.scenario.name];
  const stages = scenario?.stages ?? (exec.scenario.name === "default" ? exec.test.options.stages : undefined);
  if (!Array.isArray(stages) || stages.length === 0) {
    throw new Error(`stages are expected; the scenario ${exec.scenario.name} has none (only ramping-vus and ramping-arrival-rate have)`);
  }
  return stages;
};

const stageAt = (stages) => {
  const elapsed = Date.now() - exec.scenario.startTime;
  let until = 0;
  for (let at = 0; at < stages.length; at += 1) {
    until += parseDuration(String(stages[at].duration));
    if (elapsed < until) return at;
  }
  return stages.length - 1;
};

export const getCurrentStageIndex = () => stageAt(stagesNow());

export const tagWithCurrentStageIndex = () => {
  exec.vu.tags.stage = getCurrentStageIndex();
};

export const tagWithCurrentStageProfile = () => {
  const stages = stagesNow();
  const at = stageAt(stages);
  const change = at === 0 ? 1 : stages[at].target - stages[at - 1].target;
  exec.vu.tags.stage_profile = change > 0 ? "ramp-up" : change < 0 ? "ramp-down" : "steady";
};
