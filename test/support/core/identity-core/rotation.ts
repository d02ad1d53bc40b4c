/**
 * The times at which dynamic keys are made, sign and are published: the core's rules as pure
 * functions of the clock. Lists of keys are newest first.
 */

export interface KeyTimes {
  readonly createdMs: number
  /** Until then the previous key signs, so that verifiers have time to fetch this one. */
  readonly signsFromMs: number
}

export interface RotationSchedule {
  /** How long a key signs after its creation. */
  readonly intervalMs: number
  /** How long before that end the next key is made, and how old a key is when it first signs. */
  readonly overlapMs: number
  /** How long a key is published after its creation. */
  readonly retentionMs: number
}

const OVERLAP_MS = 60_000
/** The core keeps a key for the interval and twice the lifetime of a session token (an hour). */
const SESSION_TOKEN_VALIDITY_MS = 3_600_000
const VALIDITIES_KEPT = 2

/**
 * With less than four minutes the overlap would take too much of the interval, so it is a quarter
 * of it.
 */
const MAX_OVERLAP_SHARE = 1 / 4
/**
 * With less than ten minutes, two hours of retention would publish more keys than a verifier
 * accepts (ours: 32). Twelve intervals are at most 18 keys, and at 30 seconds still outlast a
 * 300-second token.
 */
const MAX_INTERVALS_KEPT = 12

/** The core's schedule for an interval, scaled down for the short intervals of development. */
export function scheduleFor(rotationSeconds: number): RotationSchedule {
  const intervalMs = rotationSeconds * 1000
  const overlapMs = Math.min(OVERLAP_MS, intervalMs * MAX_OVERLAP_SHARE)
  const afterlifeMs = Math.min(
    VALIDITIES_KEPT * SESSION_TOKEN_VALIDITY_MS,
    MAX_INTERVALS_KEPT * intervalMs,
  )
  return { intervalMs, overlapMs, retentionMs: intervalMs + afterlifeMs }
}

export function isPublished(key: KeyTimes, schedule: RotationSchedule, nowMs: number): boolean {
  return nowMs <= key.createdMs + schedule.retentionMs
}

/** Whether the newest key is so near its end that the next one must be made. */
export function isNewKeyDue(
  newest: KeyTimes | undefined,
  schedule: RotationSchedule,
  nowMs: number,
): boolean {
  return newest === undefined || nowMs > overlapStartMs(newest, schedule)
}

/**
 * Returns the key that signs now: the newest, unless it is too new and the previous one may still
 * sign.
 */
export function pickSigningKey<Key extends KeyTimes>(
  keys: readonly Key[],
  schedule: RotationSchedule,
  nowMs: number,
): Key | undefined {
  const [newest, previous] = keys
  if (newest === undefined || previous === undefined) return newest
  const mayPreviousSign = nowMs < previous.createdMs + schedule.intervalMs
  return nowMs < newest.signsFromMs && mayPreviousSign ? previous : newest
}

/**
 * Returns the `max-age` of the key set. It counts down to the start of the signing key's overlap,
 * and is 1 from then on until the next key signs.
 */
export function cacheSeconds(signing: KeyTimes, schedule: RotationSchedule, nowMs: number): number {
  return Math.max(1, Math.floor((overlapStartMs(signing, schedule) - nowMs) / 1000))
}

function overlapStartMs(key: KeyTimes, schedule: RotationSchedule): number {
  return key.createdMs + schedule.intervalMs - schedule.overlapMs
}
