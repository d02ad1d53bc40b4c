/** Installs the one version of google-libphonenumber with the numbering plans of the core. */
export const INSTALL_PHONE_LIBRARY = 'npm install google-libphonenumber@3.2.34'

/** Numbers with the forms in which the core stores them. Of all versions only 3.2.34 returns both. */
const PROBES: readonly (readonly [phoneNumber: string, stored: string])[] = [
  // Uruguay: versions before 3.2.34 keep the 0.
  ['+5980938322', '+598938322'],
  // Mexico: versions after 3.2.34 keep the 1.
  ['+5215512345678', '+525512345678'],
]

/**
 * Returns why the installed version cannot be used; `undefined` if it has the numbering plans of the core.
 * Compares results and not versions, because a bundle has no package.json to read.
 */
export function phonePlansFault(normalize: (phoneNumber: string) => string): string | undefined {
  if (PROBES.every(([phoneNumber, stored]) => normalize(phoneNumber) === stored)) return undefined
  return `the installed google-libphonenumber has other numbering plans than the core: run ${INSTALL_PHONE_LIBRARY}`
}
