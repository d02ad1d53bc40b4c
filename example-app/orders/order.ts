export interface Order {
  readonly id: string
  readonly item: string
  readonly quantity: number
  readonly orderedBy: string
}
