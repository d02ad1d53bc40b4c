import type { CoreVersion } from '../interface-version.js'

/** How a version of the core imports users, where versions differ. */
export interface ImportRules {
  /** Links several methods of a user of which none is primary, as if the oldest were. */
  readonly linksWithoutPrimary: boolean
  /** Looks for conflicts of primary accounts before it writes logins, in the chunk as well. */
  readonly reservesPrimaryInfos: boolean
  /** Recipes of which a login that is taken names a user. Of another it is a fault of the database. */
  readonly namedRecipes: readonly string[]
  /** What direct import says of such a fault: the error of the database, or a word. */
  readonly unnamedText: 'database' | 'translated'
  /** Whether an external id that is taken names a user. */
  readonly namesExternalIds: boolean
  /** Whether an error shows the members of a login method, or only its class. */
  readonly printsMethods: boolean
  /** Tries a chunk again in the same run when rows of it have failed. */
  readonly retriesInRun: boolean
}

const BEFORE_12 = {
  linksWithoutPrimary: true,
  reservesPrimaryInfos: false,
  namesExternalIds: false,
  retriesInRun: false,
}

export const IMPORT_RULES: Readonly<Record<CoreVersion, ImportRules>> = {
  '10.1': {
    ...BEFORE_12,
    namedRecipes: ['emailpassword'],
    unnamedText: 'database',
    printsMethods: false,
  },
  '11.4': {
    ...BEFORE_12,
    namedRecipes: ['emailpassword', 'passwordless'],
    unnamedText: 'translated',
    printsMethods: true,
  },
  '12.1': {
    linksWithoutPrimary: false,
    reservesPrimaryInfos: true,
    namedRecipes: ['emailpassword', 'thirdparty', 'passwordless'],
    unnamedText: 'translated',
    printsMethods: true,
    namesExternalIds: true,
    retriesInRun: true,
  },
}
