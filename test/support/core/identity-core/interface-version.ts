/** The version of the core to imitate, if versions differ. */
export type CoreVersion = '10.1' | '11.4' | '12.1'

/** The interface versions (CDI) that each core supports. An SDK requests this list first. */
export const INTERFACE_VERSIONS: Readonly<Record<CoreVersion, readonly string[]>> = {
  '10.1': interfaceVersions(3),
  '11.4': interfaceVersions(4),
  '12.1': interfaceVersions(6),
}

function interfaceVersions(newestOfFive: number): readonly string[] {
  const second = Array.from({ length: 15 }, (_, index) => `2.${index + 7}`)
  const fifth = Array.from({ length: newestOfFive + 1 }, (_, index) => `5.${index}`)
  return [...second, '3.0', '3.1', '4.0', ...fifth]
}
