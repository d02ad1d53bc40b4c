import {
  type BadUser,
  each,
  METHOD,
  NO_LISTS_OF_OBJECTS,
  NO_OBJECTS,
  NO_TEXTS,
  withMembers,
} from './bad-user.js'

const LONG_ID = 'i'.repeat(129)
const PADDED_ID = `${' '.repeat(100)}padded-id${' '.repeat(100)}`

export const BAD_RECORDS: readonly BadUser[] = [
  ...each('externalUserId', NO_TEXTS, (externalUserId) => ({
    user: withMembers({ externalUserId }),
    errors: ['externalUserId should be of type string.'],
  })),
  ...each('userMetadata', NO_OBJECTS, (userMetadata) => ({
    user: withMembers({ userMetadata }),
    errors: ['userMetadata should be of type object.'],
  })),
  ...each('userRoles', NO_LISTS_OF_OBJECTS, (userRoles) => ({
    user: withMembers({ userRoles }),
    errors: ['userRoles should be of type array of object.'],
  })),
  ...each('totpDevices', NO_LISTS_OF_OBJECTS, (totpDevices) => ({
    user: withMembers({ totpDevices }),
    errors: ['totpDevices should be of type array of object.'],
  })),
  ...each('loginMethods', NO_LISTS_OF_OBJECTS, (loginMethods) => ({
    user: { loginMethods },
    errors: ['loginMethods should be of type array of object.'],
  })),
  { name: 'an empty record', user: {}, errors: ['loginMethods is required.'] },
  {
    name: 'no login method',
    user: { loginMethods: [] },
    errors: ['At least one loginMethod is required.'],
  },
  {
    name: 'an external id of 129 characters',
    user: withMembers({ externalUserId: LONG_ID }),
    errors: [`externalUserId ${LONG_ID} is too long. Max length is 128.`],
  },
  {
    name: 'an external id that is too long before it is trimmed',
    user: withMembers({ externalUserId: PADDED_ID }),
    errors: [`externalUserId ${PADDED_ID} is too long. Max length is 128.`],
  },
  {
    name: 'the long external id after the faults of a login method',
    user: { externalUserId: `${LONG_ID}2`, loginMethods: [{ ...METHOD, email: '' }] },
    errors: [
      'email should be of type string for an emailpassword recipe.',
      `externalUserId ${LONG_ID}2 is too long. Max length is 128.`,
    ],
  },
  {
    name: 'each member of a wrong type, in the order of the core',
    user: { loginMethods: 1, totpDevices: 1, userRoles: 1, userMetadata: 1, externalUserId: 1 },
    errors: [
      'externalUserId should be of type string.',
      'userMetadata should be of type object.',
      'userRoles should be of type array of object.',
      'totpDevices should be of type array of object.',
      'loginMethods should be of type array of object.',
    ],
  },
  {
    name: 'an old name of the login methods',
    user: { login_methods: [METHOD] },
    errors: ['loginMethods is required.'],
  },
]
