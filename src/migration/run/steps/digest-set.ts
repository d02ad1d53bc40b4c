export interface DigestSet {
  has(text: string): boolean
  add(text: string): void
}
export const createDigestSet = (): DigestSet => new Set<string>()
