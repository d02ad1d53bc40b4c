import { randomBytes } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest'
import type { Feature } from '../support/core/identity-core/imported-user.js'
import { type CoreUnderTest, openCore, VERSIONS } from './core-under-test.js'
import { type FixtureFile, readFixtures, type Scene } from './fixtures/fixture.js'
import { replay } from './fixtures/replay.js'

/** The one subject of which the recorded core had no `firebase_password_hashing_signer_key`. */
const WITHOUT_SIGNER_KEY = 'unlicensed'

const fixtures = await readFixtures()

/** Of the form that the core asks for; all but the key of the API made for this run. */
const secrets = {
  bcrypt: `$2a$10$${random(40)}`,
  firebase: `$f_scrypt$${random(40)}$${random(8)}$m=14$r=8$s=Bw==`,
  password: random(16),
  totp: 'JBSWY3DPEHPK3PXP'.concat(random(4).toUpperCase()),
}

const isGiven = inject('givenCore') !== undefined

const isBefore = (version: string, other: string): boolean =>
  version.localeCompare(other, 'en', { numeric: true }) < 0

/** Whether a core of this version answers as the recorded one. */
const isSameIn = (version: string, { changedIn }: Scene, { since = '0' }: FixtureFile): boolean =>
  !isBefore(version, since) && (changedIn === undefined || isBefore(version, changedIn))

/** A stand-in takes the features of the recorded core; a given one has its own, and a state. */
function isFor({ features, setFeatures }: CoreUnderTest, file: FixtureFile): boolean {
  if (setFeatures !== undefined) return true
  const isLicensed = file.features.every((feature) => features.has(feature))
  return isLicensed && features.size === file.features.length
}

describe.each(isGiven ? ['given'] : VERSIONS)('core %s', (name) => {
  const version = VERSIONS.find((each) => each === name)
  const files = [...fixtures].map(([subject, file]) => {
    const isFor = (scene: Scene) => isGiven || (!scene.coreOnly && isSameIn(name, scene, file))
    return { subject, file, scenes: file.scenes.filter(isFor) }
  })

  describe.each(files.filter(({ scenes }) => scenes.length > 0))('$subject', (own) => {
    const { subject, file, scenes } = own
    let core: CoreUnderTest
    beforeAll(async () => {
      core = await openCore(version, subject !== WITHOUT_SIGNER_KEY)
    })
    afterAll(() => core.close())

    it.for(scenes)('answers as the recorded core has: $name', async (scene, { skip }) => {
      skip(!isSameIn(core.version, scene, file) || !isFor(core, file))
      core.setFeatures?.(file.features as readonly Feature[])
      const differences = await replay(scene, {
        ...core,
        secrets: { ...secrets, key: core.apiKey },
      })
      expect(differences).toEqual([])
    })
  })
})

function random(bytes: number): string {
  return randomBytes(bytes).toString('hex')
}
