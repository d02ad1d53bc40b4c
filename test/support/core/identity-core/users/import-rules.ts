import type { CoreVersion } from '../interface-version.js'

/** The differences between versions of the core in how they import users. */
export interface ImportRules {
  /** Links several methods of a user without a primary one, as if the oldest were primary. */
  readonly linksWithoutPrimary: boolean
  /** Checks primary accounts before it inserts logins, also against others of the chunk. */
  readonly reservesPrimaryInfos: boolean
  /** For these recipes, a taken login blames a user. For others, it counts as a fault of the database. */
  readonly namedRecipes: readonly string[]
  /** The text of direct import for such a fault: the error of the database, or the word `translated`. */
  readonly unnamedText: 'database' | 'translated'
  /** Whether a taken external id blames a user. */
  readonly namesExternalIds: boolean
  /** Whether an error shows the members of a login method, or only its class. */
  readonly printsMethods: boolean
  /** Tries a chunk again in the same run if some of its rows have failed. */
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
