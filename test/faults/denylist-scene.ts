import { type RedisDenylist, redisDenylist } from 'express-service-auth/redis'
import type { TestIssuer } from 'express-service-auth/testing'
import type { DenylistEntry } from '../../src/verification/denylist/denylist-entry.js'
import { createTestIssuer } from '../support/issuer/test-issuer.js'
import { launch } from '../support/process/launch.js'
import { knowToken } from '../support/secret-search/index.js'
import { until } from '../support/until.js'
import { startTraffic, type Traffic } from './denylist-traffic.js'
import { type RedisPlace, redisClient } from './redis-client.js'

/** A receiver in a process of its own. */
export interface DenylistReceiver {
  readonly name: string
  readonly port: number
  health(): Promise<Health>
}

interface Health {
  readonly state: string
  readonly version: number
  readonly regressed?: true
}

/** Receivers, each on a Redis where it finds it, and a desk that denies and allows. */
export interface DenylistScene {
  readonly issuer: TestIssuer
  /** Of a key that is published beside the one that signs. */
  readonly earlierKid: string
  readonly receivers: readonly DenylistReceiver[]
  readonly desk: RedisDenylist
  /** Requests with these tokens to all receivers, until the scene is closed. */
  startTraffic(tokens: readonly string[]): Traffic
  /** Resolves when all of them are in this state. */
  untilState(state: string, receivers?: readonly DenylistReceiver[]): Promise<void>
  /** Launches the receivers: they begin without a list. */
  launch(): Promise<void>
  close(): Promise<void>
}

const PROGRAM = new URL('denylist-receiver.ts', import.meta.url)

/** A receiver for each of the places, once they are launched. */
export async function openDenylistScene(
  desks: RedisPlace,
  places: readonly RedisPlace[] = [desks, desks, desks],
): Promise<DenylistScene> {
  const issuer = await createTestIssuer()
  const earlierKid = issuer.kid
  issuer.rotate()
  const names = places.map((_, index) => `${issuer.url} ${index + 1}`)
  let launched: readonly Launched[] = []
  const desk = redisDenylist(await redisClient(desks))
  const traffics: Traffic[] = []

  return {
    issuer,
    earlierKid,
    get receivers() {
      return launched
    },
    desk,
    async launch() {
      launched = await Promise.all(
        places.map((place, index) => launchOne(issuer.url, names[index] as string, place)),
      )
    },
    startTraffic(tokens) {
      const traffic = startTraffic(launched, tokens)
      traffics.push(traffic)
      return traffic
    },
    untilState: (state, some = launched) =>
      until(`all are ${state}`, async () => {
        const healths = await Promise.all(some.map((receiver) => receiver.health()))
        return healths.every((health) => health.state === state)
      }),
    async close() {
      await Promise.all(traffics.map((traffic) => traffic.stop()))
      await Promise.all(launched.map(({ kill }) => kill()))
      desk.close()
      await issuer.close()
    },
  }
}

interface Launched extends DenylistReceiver {
  kill(): Promise<void>
}

async function launchOne(issuer: string, name: string, place: RedisPlace): Promise<Launched> {
  const env = { ISSUER: issuer, NAME: name, SERVER: JSON.stringify(place) }
  const { greeting, kill } = await launch<{ port: number }>(PROGRAM, { env })
  const { port } = greeting
  const health = async (): Promise<Health> => {
    const response = await fetch(`http://127.0.0.1:${port}/health`)
    return (await response.json()) as Health
  }
  return { name, port, health, kill }
}

type Kind = DenylistEntry['kind']

/** A token, and what denies it and leaves others. */
export interface Target {
  readonly token: string
  readonly entry: DenylistEntry
}

const nowSeconds = (): number => Math.floor(Date.now() / 1000)

/** Of the control it differs in what its entry names. */
export function newTarget(
  { issuer, earlierKid }: Pick<DenylistScene, 'issuer' | 'earlierKid'>,
  kind: Kind,
): Target {
  const now = nowSeconds()
  const jti = crypto.randomUUID()
  const token = {
    caller: () => issuer.token({ sub: 'reporting' }),
    key: () => issuer.token({}, { kid: earlierKid }),
    token: () => issuer.token({ jti }),
    'issued-before': () => issuer.token({ iat: now - 100, exp: now + 600 }),
  }[kind]()
  knowToken(token)
  const values = {
    caller: 'reporting',
    key: earlierKid,
    token: jti,
    'issued-before': now - 50,
  }
  const entry = { issuer: issuer.url, kind, value: values[kind], at: now, until: null }
  return { token, entry: { ...entry, reason: 'its key was stolen', by: 'ops' } }
}

export function controlToken({ issuer }: Pick<DenylistScene, 'issuer'>): string {
  const token = issuer.token({ exp: nowSeconds() + 600 })
  knowToken(token)
  return token
}

/** What `allow` ends an entry by. */
export const targetOf = ({ issuer, kind, value }: DenylistEntry) =>
  kind === 'issued-before'
    ? ({ issuer, kind } as const)
    : ({ issuer, kind, value: String(value) } as const)
