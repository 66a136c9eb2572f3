/** The run's clock in words and numbers. Times are ticks; ranks are places among its changes. */

/** The first and the last tick that can be shown. */
export const firstTick = (clock) => clock.first * clock.ticks;
export const lastTick = (clock) => (clock.last + 1) * clock.ticks - 1;

/** The interval that a tick is in, and the tick at which an interval is sampled: its last. */
export const intervalOf = (clock, tick) => Math.floor(tick / clock.ticks);
export const sampled = (clock, interval) => (interval + 1) * clock.ticks - 1;

/** The sampling tick so many intervals before or after a tick, within the run. */
export function stepped(clock, tick, intervals) {
  const here = intervalOf(clock, tick);
  const early = intervals > 0 && tick !== sampled(clock, here) ? 1 : 0;
  const found = here + intervals - early;
  return sampled(clock, Math.min(Math.max(found, clock.first), clock.last));
}

export const within = (clock, tick) =>
  Math.min(Math.max(Math.round(tick), firstTick(clock)), lastTick(clock));

/** How many of the ascending values are at most `value`. */
export function upTo(values, value) {
  let low = 0, high = values.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (values[middle] <= value) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** 'interval 37', and the time since the start where it is known. */
export function spoken(clock, tick) {
  const interval = `interval ${intervalOf(clock, tick)}`;
  const seconds = since(clock, tick);
  return seconds ? `${interval}, ${seconds}` : interval;
}

/** Time since the start; empty where the length of a tick is unknown. */
export const since = (clock, tick) =>
  clock.tick_us == null ? "" : duration(tick * clock.tick_us);

/** Microseconds as text, as '1 h 02 min' or '12.503 s'. */
export function duration(us) {
  const seconds = us / 1e6;
  if (seconds < 600) return `${Number(seconds.toFixed(seconds < 1 ? 6 : 3))} s`;
  const minutes = Math.floor(seconds / 60);
  const rest = Number((seconds - minutes * 60).toFixed(1));
  if (minutes < 120) return rest ? `${minutes} min ${rest} s` : `${minutes} min`;
  const hours = Math.floor(minutes / 60);
  return hours < 72 ? `${hours} h ${minutes % 60} min`
    : `${Math.floor(hours / 24)} d ${hours % 24} h`;
}
