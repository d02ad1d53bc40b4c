import { inject } from 'vitest'
import type { Feature } from '../support/core/identity-core/imported-user.js'
import type { CoreVersion } from '../support/core/identity-core/interface-version.js'
import { type StandInCore, startStandInCore } from '../support/core/stand-in-core.js'
import type { Core } from './fixtures/replay.js'

export const VERSIONS: readonly CoreVersion[] = ['10.1', '11.4', '12.1']

export interface CoreUnderTest extends Omit<Core, 'secrets'> {
  readonly apiKey: string
  readonly version: CoreVersion
  /** Of the licence. */
  readonly features: ReadonlySet<string>
  /** Only of a stand-in. */
  readonly setFeatures?: StandInCore['setFeatures']
  close(): Promise<void>
}

/** The core that the project `core` is told of, or a stand-in of this version for each call. */
export async function openCore(
  version: CoreVersion = '11.4',
  hasFirebaseSignerKey = true,
): Promise<CoreUnderTest> {
  const given = inject('givenCore')
  if (given === undefined) {
    const core = await startStandInCore({ version, hasFirebaseSignerKey })
    return { ...core, version, features: await featuresOf(core) }
  }
  const { versions } = await ask<{ versions: string[] }>('GET', '/apiversion', given)
  return {
    ...given,
    version: coreVersion(versions),
    features: await featuresOf(given),
    close: async () => undefined,
  }
}

type Address = Pick<CoreUnderTest, 'url' | 'apiKey'>

async function featuresOf(core: Address): Promise<ReadonlySet<string>> {
  return new Set((await ask<{ features: Feature[] }>('GET', '/ee/featureflag', core)).features)
}

function coreVersion(versions: readonly string[]): CoreVersion {
  if (versions.includes('5.5')) return '12.1'
  return versions.includes('5.4') ? '11.4' : '10.1'
}

/** The body of the answer, which is JSON. */
export async function ask<Body>(
  method: string,
  path: string,
  { url, apiKey, body }: Address & { readonly body?: object },
): Promise<Body> {
  const sent = body === undefined ? {} : { body: JSON.stringify(body) }
  const response = await fetch(url + path, { method, headers: { 'api-key': apiKey }, ...sent })
  return JSON.parse(await response.text())
}
