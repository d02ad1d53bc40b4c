/**
 * The time in milliseconds since the epoch.
 *
 * @throws TypeError if the clock returns anything but a finite number.
 */
export function readClock(clock: () => number): number {
  const now = clock()
  if (Number.isFinite(now)) return now
  throw new TypeError('the clock must return a finite number of ms')
}
