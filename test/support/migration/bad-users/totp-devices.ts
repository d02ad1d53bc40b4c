import { type BadUser, each, NO_INTEGERS, NO_TEXTS, withMembers } from './bad-user.js'

const DEVICE = { secretKey: 'bad-users-totp-key', deviceName: 'phone' }
const LONG_NAME = 'n'.repeat(257)

const withDevices = (...totpDevices: object[]) => withMembers({ totpDevices })

/** Without the feature, the core refuses all devices. */
export const BAD_TOTP_DEVICES: readonly BadUser[] = [
  {
    name: 'a device without the feature',
    user: withDevices(DEVICE),
    errors: ['MFA must be enabled to import totp devices.'],
    features: 'none',
  },
  {
    name: 'no device without the feature',
    user: withDevices(),
    errors: ['MFA must be enabled to import totp devices.'],
    features: 'none',
  },
  {
    name: 'faults of a device without the feature',
    user: withDevices({ period: 0 }, { skew: -1 }),
    errors: ['MFA must be enabled to import totp devices.'],
    features: 'none',
  },
  ...[
    ...each('secretKey', NO_TEXTS, (secretKey) => ({
      user: withDevices({ ...DEVICE, secretKey }),
      errors: ['secretKey should be of type string for a totp device.'],
    })),
    ...each('deviceName', NO_TEXTS, (deviceName) => ({
      user: withDevices({ ...DEVICE, deviceName }),
      errors: ['deviceName should be of type string for a totp device.'],
    })),
    ...each('period', NO_INTEGERS, (period) => ({
      user: withDevices({ ...DEVICE, period }),
      errors: ['period should be of type integer for a totp device.'],
    })),
    ...each('skew', NO_INTEGERS, (skew) => ({
      user: withDevices({ ...DEVICE, skew }),
      errors: ['skew should be of type integer for a totp device.'],
    })),
    ...each(
      'period below 1',
      [0, -1, 0.9, 2 ** 31, 2 ** 32, 1e19, 1e300].map((period) => [String(period), period]),
      (period) => ({
        user: withDevices({ ...DEVICE, period }),
        errors: ['period should be > 0 for a totp device.'],
      }),
    ),
    ...each(
      'skew below 0',
      [-1, -1.9, 2 ** 31, 3e9].map((skew) => [String(skew), skew]),
      (skew) => ({
        user: withDevices({ ...DEVICE, skew }),
        errors: ['skew should be >= 0 for a totp device.'],
      }),
    ),
    {
      name: 'a device without key',
      user: withDevices({ deviceName: 'phone' }),
      errors: ['secretKey is required for a totp device.'],
    },
    {
      name: 'a key of 257 characters',
      user: withDevices({ ...DEVICE, secretKey: 'bad-users-totp-key'.padEnd(257, 'k') }),
      errors: ['TOTP secretKey … is too long. Max length is 256.'],
    },
    {
      name: 'a device name of 257 characters',
      user: withDevices({ ...DEVICE, deviceName: LONG_NAME }),
      errors: [`TOTP deviceName ${LONG_NAME} is too long. Max length is 256.`],
    },
    {
      name: 'all faults of a device at once',
      user: withDevices({ period: 0, skew: -1, deviceName: LONG_NAME }, { secretKey: '' }),
      errors: [
        'secretKey is required for a totp device.',
        'period should be > 0 for a totp device.',
        'skew should be >= 0 for a totp device.',
        `TOTP deviceName ${LONG_NAME} is too long. Max length is 256.`,
        'secretKey should be of type string for a totp device.',
      ],
    },
  ].map((bad) => ({ ...bad, features: 'all' as const })),
]
