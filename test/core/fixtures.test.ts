import { randomBytes } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest'
import type { Feature } from '../support/core/identity-core/imported-user.js'
import { type StandInCore, startStandInCore } from '../support/core/stand-in-core.js'
import { readFixtures } from './fixtures/fixture.js'
import { replay } from './fixtures/replay.js'

/** The one subject of which the recorded core had no `firebase_password_hashing_signer_key`. */
const WITHOUT_SIGNER_KEY = 'unlicensed'

/** The recorded core was 10.1.8. */
const VERSION = '10.1'

const fixtures = await readFixtures()

/** A core that was given has a state and settings of its own: the other tests here are for it. */
const isGiven = inject('givenCore') !== undefined

/** Of the form that the core asks for; all but the key of the API made for this run. */
const secrets = {
  bcrypt: `$2a$10$${random(40)}`,
  firebase: `$f_scrypt$${random(40)}$${random(8)}$m=14$r=8$s=Bw==`,
  password: random(16),
  totp: 'JBSWY3DPEHPK3PXP'.concat(random(4).toUpperCase()),
}

let core: StandInCore
let coreWithoutSignerKey: StandInCore

beforeAll(async () => {
  if (isGiven) return
  core = await startStandInCore({ version: VERSION, firebaseSignerKey: random(64) })
  coreWithoutSignerKey = await startStandInCore({ version: VERSION, features: [] })
})

afterAll(async () => {
  await core?.close()
  await coreWithoutSignerKey?.close()
})

describe.skipIf(isGiven).each([...fixtures])('%s', (name, { features, scenes }) => {
  const shared = scenes.filter((scene) => !scene.coreOnly)

  it.each(shared)('the stand-in answers as the core has: $name', async (scene) => {
    const standIn = name === WITHOUT_SIGNER_KEY ? coreWithoutSignerKey : core
    standIn.setFeatures(features as readonly Feature[])
    const { url, apiKey, runJob } = standIn
    const differences = await replay(scene, { url, runJob, secrets: { ...secrets, key: apiKey } })
    expect(differences).toEqual([])
  })
})

function random(bytes: number): string {
  return randomBytes(bytes).toString('hex')
}
