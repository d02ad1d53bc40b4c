import { SYSTEM_TIMING, type Timing } from '../../../../src/migration/run/records.js'

/** The seconds of a run, as milliseconds. */
export const QUICK_TIMING: Timing = {
  ...SYSTEM_TIMING,
  sleep: (ms, signal) => SYSTEM_TIMING.sleep(Math.min(ms, 5), signal),
}
