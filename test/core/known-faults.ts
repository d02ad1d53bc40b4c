import { expect } from 'vitest'
import type { CoreVersion } from '../support/core/identity-core/interface-version.js'

/** What is taken already, or that a user was staged beside others who conflict. */
export type Conflict = 'provider' | 'passwordless' | 'external_id' | 'beside'

interface KnownFault {
  readonly version: CoreVersion
  readonly conflict: Conflict
  /** Of what the core says where an error of its own list belongs; a row's status without one. */
  readonly text: RegExp
  readonly fault: string
}

const STUCK = 'the row stays PROCESSING'
const SQL = 'the text is that of the database'

/** Faults of released cores, seen on 10.1.8 and 11.4.7. */
const KNOWN_FAULTS: readonly KnownFault[] = [
  sql('10.1', 'provider', 'thirdparty_user_to_tenant_third_party_user_id_key'),
  sql('10.1', 'passwordless', 'passwordless_user_to_tenant_(email|phone_number)_key'),
  sql('10.1', 'external_id', 'userid_mapping_external_user_id_key'),
  stuck('10.1', 'provider'),
  stuck('10.1', 'passwordless'),
  stuck('10.1', 'external_id'),
  stuck('10.1', 'beside'),
  { version: '11.4', conflict: 'provider', text: /^translated$/, fault: 'the text is lost' },
  sql('11.4', 'external_id', 'userid_mapping_external_user_id_key'),
  stuck('11.4', 'provider'),
  stuck('11.4', 'external_id'),
  stuck('11.4', 'beside'),
]

function sql(version: CoreVersion, conflict: Conflict, constraint: string): KnownFault {
  const text = new RegExp(`duplicate key value violates unique constraint "${constraint}"`)
  return { version, conflict, text, fault: SQL }
}

function stuck(version: CoreVersion, conflict: Conflict): KnownFault {
  return { version, conflict, text: /^PROCESSING$/, fault: STUCK }
}

/** The fault that a text shows; `undefined` where it shows none that is known. */
function knownFault(
  version: CoreVersion,
  conflict: Conflict,
  text: string | undefined,
): string | undefined {
  const found = KNOWN_FAULTS.find(
    (each) => each.version === version && each.conflict === conflict && each.text.test(text ?? ''),
  )
  return found && `a known fault of core ${version} (${conflict}): ${found.fault}`
}

/** The text, or a fault of the core that is known: that one is named on standard error. */
export function expectText(
  { version, conflict }: { readonly version: CoreVersion; readonly conflict: Conflict },
  met: string | undefined,
  text: unknown,
): void {
  const fault = knownFault(version, conflict, met)
  if (fault === undefined) expect(met).toEqual(text)
  else console.warn(fault)
}
